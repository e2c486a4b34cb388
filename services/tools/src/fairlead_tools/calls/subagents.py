"""Sessions below a call: made once, prompted once, looked at until they have an answer."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from pydantic_core import from_json, to_json

from fairlead_eventlog.connection import EventLog
from fairlead_schema import subjects
from fairlead_schema.ids import SessionId, TenantId
from fairlead_schema.subjects import Address
from fairlead_session.calls.child_ids import child_of, first_prompt
from fairlead_session.calls.lifecycle import Failed, Outcome
from fairlead_session.calls.subagents import child_outcome, next_unread
from fairlead_session.execution.budget import remaining_budget
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.fold.calls import find_call
from fairlead_session.state.session import Session
from fairlead_tools.registry.tool import CallContext, CallFailed

TIMEOUT_S: Final = 10.0
UNWANTED: Final = Failed("The call was settled before its sub-agent began")


class SessionReader(Protocol):
    """Sessions as the log holds them."""

    async def read(self, at: Address) -> Session:
        """A session now. Raises RecordError if it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class SubagentTask:
    """What a session below is made for."""

    agent: str
    prompt: str


class Subagents:
    """Makes sessions for calls and reads their answers. Everything here may be done again."""

    def __init__(self, eventlog: EventLog, sessions: SessionReader, *, depth_max: int) -> None:
        self._requests = eventlog.requests
        self._sessions = sessions
        self._depth_max = depth_max

    async def attend(self, context: CallContext, work: SubagentTask) -> Outcome | None:
        """Make and prompt the session of a call, if that is still to do; its answer, if any.

        Raises CallFailed when it cannot be made, LogError while nobody serves.
        """
        below = Address(context.at.tenant, _child(context))
        child = await self._sessions.read(below)
        if first_prompt(child.id) not in child.inbox.admissions:
            parent = await self._sessions.read(context.at)
            if find_call(parent, *_key(context)) is None:
                return UNWANTED
            await self._check_depth(context.at.tenant, parent)
            await self._make(context, work, child.id, parent)
            if find_call(await self._sessions.read(context.at), *_key(context)) is None:
                # Settled meanwhile, by an interrupt: what was just begun must not run on.
                await self._interrupt(below)
                return UNWANTED
            return None
        return (
            None
            if child_outcome(child) is None
            else child_outcome(child, await self._below(below, child))
        )

    async def _below(self, at: Address, child: Session) -> dict[SessionId, Session]:
        """The sessions below one that stopped before they could tell it what they used."""
        known: dict[SessionId, Session] = {}
        while (next_ := next_unread(child.usage.children.uncounted, known)) is not None:
            known[next_] = await self._sessions.read(Address(at.tenant, next_))
        return known

    async def abandon(self, at: Address, assistant_message_id: str, call_id: str) -> None:
        """Stop the session of a call that is settled, should there be one at work."""
        below = Address(at.tenant, child_of(at.session_id, assistant_message_id, call_id))
        child = await self._sessions.read(below)
        if child.profile is not None and not is_at_rest(child):
            await self._interrupt(below)

    async def _make(
        self, context: CallContext, work: SubagentTask, child: SessionId, parent: Session
    ) -> None:
        assert parent.profile is not None, "a session with calls was created"
        limits, model = remaining_budget(parent), parent.profile.model
        create: dict[str, Any] = {
            "id": child,
            "agent": work.agent,
            "location": context.location.wire(),
            "parentID": context.at.session_id,
        }
        budget = {"cost": limits.cost, "tokens": limits.tokens}
        create["budget"] = {limit: value for limit, value in budget.items() if value is not None}
        if model is not None:
            create["model"] = model.wire()
        await self._tell(context.at.tenant, "session.create", create)
        prompt = {
            "sessionID": child,
            "id": first_prompt(child),
            "prompt": {"text": work.prompt},
        }
        await self._tell(context.at.tenant, "session.prompt", prompt)

    async def _check_depth(self, tenant: TenantId, parent: Session) -> None:
        """Sub-agents of sub-agents of sub-agents end somewhere."""
        above = parent.profile.parent_id if parent.profile else None
        for _ in range(self._depth_max - 1):
            if above is None:
                return
            session = await self._sessions.read(Address(tenant, above))
            above = session.profile.parent_id if session.profile else None
        if above is not None:
            raise CallFailed(f"Sub-agents may be nested {self._depth_max} deep, and no deeper")

    async def _interrupt(self, below: Address) -> None:
        await self._tell(below.tenant, "session.interrupt", {"sessionID": below.session_id})

    async def _tell(self, tenant: TenantId, verb: str, command: dict[str, Any]) -> None:
        """One command to ingest. Raises CallFailed with the reason of a refusal."""
        answer = await self._requests.request(
            subjects.api(tenant, verb), to_json(command), timeout_s=TIMEOUT_S
        )
        error = from_json(answer).get("error")
        if error is not None:
            raise CallFailed(f"The sub-agent cannot be started: {error.get('message', error)}")


def _child(context: CallContext) -> SessionId:
    return child_of(context.at.session_id, *_key(context))


def _key(context: CallContext) -> tuple[str, str]:
    return context.assistant_message_id, context.call_id
