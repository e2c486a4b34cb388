"""Decides how a call begins: refused, asked about, answered elsewhere, left to others, or run."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, TypeAlias, assert_never

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.quotas.running_quota import QuotaWait
from fairlead_eventlog.streams import TOOL_DEADLINE_S
from fairlead_schema.events import PermissionAsked, QuestionAsked, SessionEvent
from fairlead_schema.ids import WorkerId
from fairlead_service.ids import now_ms
from fairlead_service.locations import LocationRefused, locate
from fairlead_session.calls.lifecycle import (
    Begin,
    DeferredCall,
    Failed,
    LeaveToWorker,
    NotOpen,
    Outcome,
    Settle,
    WaitsForPerson,
    begin,
    settle,
)
from fairlead_session.fold.calls import find_call
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.liveness import PeerLiveness
from fairlead_tools.calls.output import OutputRetention
from fairlead_tools.calls.permission import CallPolicy, PermissionCheck, Permitted
from fairlead_tools.calls.request import TakenRequest
from fairlead_tools.quotas import TenantQuotas
from fairlead_tools.registry.outcome import error_text, tool_failure
from fairlead_tools.registry.registry import PreparedCall, Registry, Scope
from fairlead_tools.registry.tool import CallContext, CallFailed

# How soon a request comes again for a call whose worker lives, and for one whose worker is silent.
BUSY_RECHECK_S: Final = 1.0
SILENT_RECHECK_S: Final = TOOL_DEADLINE_S / 4
LATE: Final = Failed(
    "The queued call was not answered in time: its outcome is unknown", unseen=True
)


@dataclass(frozen=True, slots=True)
class Runnable:
    """The worker may run the call as soon as the start is written."""

    prepared: PreparedCall
    call: UnsettledCall
    """The call as the log holds it after its start."""
    context: CallContext


@dataclass(frozen=True, slots=True)
class WaitsForAnswer:
    """A person is asked. The answer brings a new request, so this one is done."""


@dataclass(frozen=True, slots=True)
class LeftToOthers:
    """Another worker or another service has the call. The request comes again after the delay."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class WaitsForQuota:
    """The tenant or the principal runs as many calls as it may. The request comes again after the delay."""

    wait: QuotaWait


@dataclass(frozen=True, slots=True)
class AnsweredElsewhere:
    """A session or a service answers, perhaps after days. Its answer or the deadline brings a request."""


@dataclass(frozen=True, slots=True)
class SettledAtOnce:
    """The commit that would have begun the call settled it."""

    end: Literal["refused", "interrupted", "succeeded"]


Verdict: TypeAlias = (
    Runnable
    | WaitsForAnswer
    | WaitsForQuota
    | LeftToOthers
    | AnsweredElsewhere
    | SettledAtOnce
    | NotOpen
)
Decision: TypeAlias = tuple[tuple[SessionEvent, ...], Verdict]
"""The events to write, and the verdict that holds once they are written."""


class BeginDecider:
    """Decides for one worker, from the session, the registry and the permissions. Writes nothing."""

    def __init__(
        self,
        peers: PeerLiveness,
        eventlog: EventLog,
        registry: Registry,
        outputs: OutputRetention,
        policy: CallPolicy,
        quotas: TenantQuotas,
    ) -> None:
        self._worker = peers.own
        self._roots = policy.roots
        self._quota = quotas.calls
        self._peers = peers
        self._registry = registry
        self._outputs = outputs
        self._permissions = PermissionCheck(eventlog.approvals, policy.rules)

    async def decide(self, session: Session, request: TakenRequest) -> Decision:
        """Decide from one state of the session. After a conflict the caller decides again."""
        peer = self._peer(session, request)
        life = None if peer is None else await self._peers.ping(peer)
        if peer is not None and life == "silent" and not self._peers.is_overdue(peer):
            # The worker may only be paused: its call is left to it until the deadline of its request.
            return (), LeftToOthers(SILENT_RECHECK_S)
        decision = begin(session, request.assistant_message_id, request.call_id, self._worker, life)
        match decision:
            case Begin():
                return await self._decide_begin(session, request, decision)
            case Settle(event=event):
                return (event,), SettledAtOnce("interrupted")
            case LeaveToWorker():
                return (), LeftToOthers(BUSY_RECHECK_S)
            case WaitsForPerson():
                return (), WaitsForAnswer()
            case DeferredCall(call=call, until=until):
                if until > now_ms():
                    return (), AnsweredElsewhere()
                return self._settle(session, call, LATE)
            case NotOpen():
                return (), decision
            case _:
                assert_never(decision)

    async def _decide_begin(
        self, session: Session, request: TakenRequest, begun: Begin
    ) -> Decision:
        """Check the location, prepare the call and check its permissions, in this order."""
        assert session.profile is not None, "a session with calls was created"
        location = session.profile.location
        # A link may lead elsewhere since the session was created. A disk that hangs blocks a thread.
        place = await asyncio.to_thread(locate, self._roots(request.at.tenant), location)
        if isinstance(place, LocationRefused):
            return self._settle(session, begun.call, tool_failure(place.message))
        scope = Scope(request.at.tenant, location.directory)
        await self._registry.refresh_for_call(begun.call, scope)
        prepared = self._registry.prepare(begun.call, scope)
        if isinstance(prepared, Failed):
            return self._settle(session, begun.call, prepared)
        context = CallContext(
            at=request.at,
            location=location,
            checked_directory=place,
            agent=begun.call.agent,
            assistant_message_id=request.assistant_message_id,
            call_id=request.call_id,
            worker=self._worker,
            principal=session.profile.created_by,
        )
        permission = await self._permissions.check(session, begun.call, prepared, context)
        match permission:
            case Failed():
                return self._settle(session, begun.call, permission)
            case PermissionAsked() | QuestionAsked():
                return (permission,), WaitsForAnswer()
            case Permitted() if prepared.tool.attend is not None:
                answer = await self._answer_elsewhere(prepared, context)
                if answer is not None:
                    return self._settle(session, begun.call, answer)
                return (), AnsweredElsewhere()
            case Permitted(needs=needs):
                # A call that a dead worker started counts already, and has to go on.
                is_counted = begun.call.worker is not None
                wait = (
                    None if is_counted else await self._quota.take(request.key, context.principal)
                )
                if wait is not None:
                    return (), WaitsForQuota(wait)
                read_filter = partial(self._permissions.read_filter, session, begun.call, context)
                permitted = replace(context, permitted=needs, read_filter=read_filter)
                return (begun.event,), Runnable(prepared, begun.started_call, permitted)
            case _:
                assert_never(permission)

    async def _answer_elsewhere(
        self, prepared: PreparedCall, context: CallContext
    ) -> Outcome | None:
        """The outcome of a call that something else answers; None until there is one."""
        assert prepared.tool.attend is not None, "something else answers the call"
        try:
            outcome = await prepared.tool.attend(prepared.input, context)
        except CallFailed as error:
            outcome = tool_failure(error_text(error))
        if outcome is None:
            return None
        return await self._outputs.bound(
            context.at, outcome, principal=context.principal, limits=prepared.tool.limits
        )

    def _peer(self, session: Session, request: TakenRequest) -> WorkerId | None:
        """The other worker that runs the call, according to the log."""
        call = find_call(session, request.assistant_message_id, request.call_id)
        if call is None or call.worker == self._worker or call.deferred_until is not None:
            return None
        return call.worker

    def _settle(self, session: Session, call: UnsettledCall, outcome: Outcome) -> Decision:
        end: Literal["refused", "succeeded"] = (
            "refused" if isinstance(outcome, Failed) else "succeeded"
        )
        return settle(session, call, outcome), SettledAtOnce(end)
