"""How a call begins: refused, asked for, answered elsewhere, left alone, or run."""

from collections import OrderedDict
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final, TypeAlias, assert_never

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import Job
from fairlead_eventlog.streams import TOOL_DEADLINE_S
from fairlead_schema.events import PermissionAsked, QuestionAsked, SessionEvent
from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.subjects import Address
from fairlead_schema.tools.request import ToolRequest
from fairlead_service.ids import now_ms
from fairlead_session.calls.lifecycle import (
    Begin,
    DeferredCall,
    Failed,
    LeaveToWorker,
    NotOpen,
    Outcome,
    Settle,
    Succeeded,
    WaitsForPerson,
    begin,
    settle,
)
from fairlead_session.fold.calls import find_call
from fairlead_session.people.asks import AgentRules
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.execution import error_text, tool_failure
from fairlead_tools.calls.liveness import PeerLiveness
from fairlead_tools.calls.output import OutputRetention
from fairlead_tools.calls.permission import PermissionCheck, Permitted
from fairlead_tools.registry.registry import PreparedCall, Registry, Scope
from fairlead_tools.registry.tool import CallContext, CallFailed

# How long a request waits before somebody looks again at a call whose worker lives.
BUSY_RECHECK_S: Final = 1.0
# What answers a call brings a new request when it has; one that was lost costs no more than this.
ANSWER_RECHECK_S: Final = 15.0
DEDUP_CALLS_MAX: Final = 10_000
# How long a request waits before somebody looks again at a call whose worker does not answer.
SILENT_RECHECK_S: Final = TOOL_DEADLINE_S / 4
LATE: Final = Failed("The queued call was not answered in time: its outcome is unknown")


@dataclass(frozen=True, slots=True)
class Ready:
    """Begun in the log: run it."""

    prepared: PreparedCall
    call: UnsettledCall
    context: CallContext


@dataclass(frozen=True, slots=True)
class Asked:
    """A person is asked: the answer brings a new request, so this one is done with."""


@dataclass(frozen=True, slots=True)
class Left:
    """Not now, or not by this worker."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A newer request looks after the call: one is enough."""


Decided: TypeAlias = Ready | Asked | Left | Duplicate | Settle | Succeeded | Failed | NotOpen
Decision: TypeAlias = tuple[tuple[SessionEvent, ...], Decided]


class RequestDedup:
    """Which request looks after each call that something else answers: the newest one.

    Each time the session is swept, or what it waits for rests, one more may come; all others are
    spare, or they would add up for as long as the answer takes. One that was not seen for two looks
    counts for nothing: it may be lost, and a server that lost it counts on from lower sequences.
    """

    def __init__(self) -> None:
        self._newest: OrderedDict[tuple[Address, MessageId, CallId], tuple[int, float]] = (
            OrderedDict()
        )

    def again(self, at: Address, call: UnsettledCall, job: Job) -> Left | Duplicate:
        """Whether this request looks again. A worker that saw no newer one keeps it."""
        key = (at, call.assistant_message_id, call.call_id)
        newest, seen = self._newest.get(key, (0, 0.0))
        now = monotonic()
        if job.sequence < newest and now - seen < 2 * ANSWER_RECHECK_S:
            return Duplicate()
        self._newest[key] = (job.sequence, now)
        self._newest.move_to_end(key)
        if len(self._newest) > DEDUP_CALLS_MAX:
            self._newest.popitem(last=False)
        return Left(ANSWER_RECHECK_S)


class BeginDecider:
    """Decides for one worker what becomes of a request, from the log and the registry."""

    def __init__(
        self,
        worker: WorkerId,
        eventlog: EventLog,
        registry: Registry,
        retention: OutputRetention,
        rules: AgentRules,
    ) -> None:
        self._worker = worker
        self._silences = PeerLiveness(eventlog.liveness)
        self._registry = registry
        self._retention = retention
        self._permitting = PermissionCheck(eventlog.approvals, rules)
        self._looks = RequestDedup()

    async def decide(
        self, session: Session, at: Address, request: ToolRequest, job: Job
    ) -> Decision:
        """What to write before anything runs. Asked anew whenever the session has moved."""
        worker = self._other(session, request)
        life = None if worker is None else await self._silences.ask(worker)
        if worker is not None and life == "silent" and not self._silences.over(worker):
            # Perhaps only busy: the deadline of its own request decides.
            return (), Left(SILENT_RECHECK_S)
        decision = begin(session, request.assistant_message_id, request.call_id, self._worker, life)
        match decision:
            case Begin():
                return await self._begun(session, at, decision, job)
            case Settle(event=event):
                return (event,), decision
            case LeaveToWorker():
                return (), Left(BUSY_RECHECK_S)
            case WaitsForPerson():
                return (), Asked()
            case DeferredCall(call=call, until=until):
                left_s = (until - now_ms()) / 1000
                return (settle(session, call, LATE), LATE) if left_s <= 0 else ((), Left(left_s))
            case NotOpen():
                return (), decision
            case _:
                assert_never(decision)

    async def _begun(self, session: Session, at: Address, decision: Begin, job: Job) -> Decision:
        assert session.profile is not None, "a session with calls was created"
        scope = Scope(at.tenant, session.profile.location.directory)
        await self._registry.refresh_for_call(decision.call, scope)
        prepared = self._registry.prepare(decision.call, scope)
        if isinstance(prepared, Failed):
            return settle(session, decision.call, prepared), prepared
        context = CallContext(
            at=at,
            location=session.profile.location,
            agent=decision.call.agent,
            assistant_message_id=decision.call.assistant_message_id,
            call_id=decision.call.call_id,
            worker=self._worker,
        )
        first = await self._permitting.decide(session, decision.call, prepared, context)
        match first:
            case Failed():
                return settle(session, decision.call, first), first
            case PermissionAsked() | QuestionAsked():
                return (first,), Asked()
            case Permitted() if prepared.tool.attend is not None:
                answer = await self._attended(prepared, context)
                if answer is None:
                    return (), self._looks.again(at, decision.call, job)
                return settle(session, decision.call, answer), answer
            case Permitted(needs=needs):
                permitted = replace(context, permitted=needs)
                return (decision.event,), Ready(prepared, decision.started, permitted)
            case _:
                assert_never(first)

    async def _attended(self, prepared: PreparedCall, context: CallContext) -> Outcome | None:
        """The outcome of a call that something else answers, once that is there; nobody waits."""
        assert prepared.tool.attend is not None, "only such a call is attended"
        try:
            outcome = await prepared.tool.attend(prepared.input, context)
        except CallFailed as error:
            outcome = tool_failure(error_text(error))
        if outcome is None:
            return None
        limits = prepared.tool.limits or self._retention.limits
        return await self._retention.recordable(context.at, outcome, limits=limits)

    def _other(self, session: Session, request: ToolRequest) -> WorkerId | None:
        """The other worker that runs the call, as far as the log knows."""
        call = find_call(session, request.assistant_message_id, request.call_id)
        if call is None or call.worker == self._worker or call.deferred_until is not None:
            return None
        return call.worker
