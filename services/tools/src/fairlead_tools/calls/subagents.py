"""Sub-agents: a call whose answer comes from a session of its own, a child of the caller's session.

The ids of the child and of its first prompt follow from the call. So every step here can be repeated:
a worker that repeats it finds what exists (docs/adr/0015).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.service_command import send_service_command
from fairlead_schema import subjects
from fairlead_schema.catalog import ModelRef
from fairlead_schema.errors import Refused
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CallId, MessageId, SessionId, TenantId
from fairlead_schema.subjects import Address
from fairlead_session.calls.child_ids import child_of, first_prompt
from fairlead_session.calls.lifecycle import Failed, Outcome
from fairlead_session.calls.subagents import child_outcome, next_unread
from fairlead_session.execution.budget import remaining_budget
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.fold.calls import find_call
from fairlead_session.input.options import choose_profile
from fairlead_session.state.session import Session
from fairlead_tools.calls.log import CallLog
from fairlead_tools.registry.tool import CallContext, CallFailed

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 10.0
UNWANTED: Final = Failed("The call was settled before its sub-agent began")


@dataclass(frozen=True, slots=True)
class SubagentTask:
    """The work of a sub-agent."""

    agent: str
    prompt: str


AgentModel: TypeAlias = Callable[[str | None], ModelRef | None]
"""Names the model that an agent has of its own."""


def no_model(_agent: str | None) -> ModelRef | None:
    """Name no model: every agent works on the session's."""
    return None


class Subagents:
    """Creates the children of calls, reads their answers, and stops them."""

    def __init__(
        self,
        eventlog: EventLog,
        log: CallLog,
        *,
        depth_max: int,
        agent_model: AgentModel = no_model,
    ) -> None:
        self._requests = eventlog.requests
        self._log = log
        self._depth_max = depth_max
        self._agent_model = agent_model

    async def attend(self, context: CallContext, task: SubagentTask) -> Outcome | None:
        """Create and prompt the child of a call, unless that is done; its answer, if there is one.

        Raises CallFailed when the child cannot be created, LogError while no ingest answers.
        """
        at = Address(context.at.tenant, child_of(context.at.session_id, *_call_key(context)))
        child = await self._log.read(at)
        if first_prompt(child.id) in child.inbox.admissions:
            return await self._answer(at, child)
        parent = await self._log.read(context.at)
        if find_call(parent, *_call_key(context)) is None:
            return UNWANTED
        await self._check_depth(context.at.tenant, parent)
        await self._create(context, task, child.id, parent)
        if find_call(await self._log.read(context.at), *_call_key(context)) is None:
            # An interrupt settled the call meanwhile, and found no child to stop.
            await self._interrupt(at)
            return UNWANTED
        return None

    async def stop_child(self, at: Address, message_id: MessageId, call_id: CallId) -> None:
        """Stop the child of a call that is settled, if there is one at work."""
        child_at = Address(at.tenant, child_of(at.session_id, message_id, call_id))
        child = await self._log.read(child_at)
        if child.profile is not None and not is_at_rest(child):
            await self._interrupt(child_at)

    async def _answer(self, at: Address, child: Session) -> Outcome | None:
        """The outcome of a child at rest. It counts the usage of descendants that stopped early."""
        if child_outcome(child) is None:
            return None
        descendants: dict[SessionId, Session] = {}
        uncounted = child.usage.children.uncounted
        while (unread := next_unread(uncounted, descendants)) is not None:
            descendants[unread] = await self._log.read(Address(at.tenant, unread))
        return child_outcome(child, descendants)

    async def _create(
        self, context: CallContext, task: SubagentTask, child: SessionId, parent: Session
    ) -> None:
        """Create a child with what is left of its parent's budget, and prompt it.

        The child works for the principal of its parent, so it counts for the root's principal.
        """
        assert parent.profile is not None, "a session with calls was created"
        limits = remaining_budget(parent)
        budget = {"cost": limits.cost, "tokens": limits.tokens}
        create: dict[str, Any] = {
            "id": child,
            "agent": task.agent,
            "location": context.location.wire(),
            "parentID": context.at.session_id,
            "budget": {limit: left for limit, left in budget.items() if left is not None},
        }
        chosen = choose_profile(parent).profile or parent.profile
        model = chosen.model or self._agent_model(chosen.agent)
        if model is not None and self._agent_model(task.agent) is None:
            create["model"] = model.wire()
        by = parent.profile.created_by
        await self._start(context.at.tenant, "session.create", create, by=by)
        prompt = {
            "sessionID": child,
            "id": first_prompt(child),
            # A model wrote the text, so that nothing in it is expanded.
            "prompt": {"text": task.prompt, "expand": False},
        }
        await self._start(context.at.tenant, "session.prompt", prompt)

    async def _check_depth(self, tenant: TenantId, parent: Session) -> None:
        """Raise CallFailed if the parent has as many ancestors as a sub-agent may have."""
        ancestor = parent.profile.parent_id if parent.profile else None
        for _ in range(self._depth_max - 1):
            if ancestor is None:
                return
            session = await self._log.read(Address(tenant, ancestor))
            ancestor = session.profile.parent_id if session.profile else None
        if ancestor is not None:
            raise CallFailed(f"Sub-agents may be nested {self._depth_max} deep, and no deeper")

    async def _interrupt(self, at: Address) -> None:
        """Stop a child. Raises LogError while no ingest takes the interrupt."""
        try:
            await self._send(at.tenant, "session.interrupt", {"sessionID": at.session_id})
        except Refused as refusal:
            extra = {"session_id": at.session_id, "reason": f"{refusal.tag}: {refusal}"}
            log.warning("unwanted sub-agent cannot be stopped: it works on", extra=extra)

    async def _start(
        self,
        tenant: TenantId,
        verb: str,
        command: dict[str, Any],
        *,
        by: PrincipalName | None = None,
    ) -> None:
        """Send a command that starts a child. Raises CallFailed with the reason of a refusal."""
        try:
            await self._send(tenant, verb, command, by=by)
        except Refused as refusal:
            raise CallFailed(f"The sub-agent cannot be started: {refusal}") from refusal

    async def _send(
        self,
        tenant: TenantId,
        verb: str,
        command: dict[str, Any],
        *,
        by: PrincipalName | None = None,
    ) -> None:
        """Send a command to ingest. Raises its refusal, or LogError: then the request comes again."""
        subject = subjects.api(tenant, verb)
        await send_service_command(self._requests, subject, command, timeout_s=TIMEOUT_S, by=by)


def _call_key(context: CallContext) -> tuple[MessageId, CallId]:
    return context.assistant_message_id, context.call_id
