"""How a request opens its call: from what its sender knew, if that still holds, else from the log."""

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import CommitTooLarge
from fairlead_eventlog.ports import Head
from fairlead_eventlog.session_cache import Versioned
from fairlead_eventlog.session_writer import AssumedState
from fairlead_schema.subjects import Address
from fairlead_schema.tools.request import ToolRequest
from fairlead_session.calls.lifecycle import settlement_events
from fairlead_session.calls.snapshot import session_from_snapshot
from fairlead_session.state.session import Session
from fairlead_tools.calls.begin import BeginDecider, Decided, Decision, Ready
from fairlead_tools.calls.log import CallLog
from fairlead_tools.calls.output import OutputRetention
from fairlead_tools.calls.run import Run
from fairlead_tools.calls.taken_request import Held


class Opening:
    """Opens calls for one worker."""

    def __init__(
        self,
        begins: BeginDecider,
        eventlog: EventLog,
        ledger: CallLog,
        retention: OutputRetention,
        spool_dir: str | None,
    ) -> None:
        self._begins = begins
        self._eventlog = eventlog
        self._ledger = ledger
        self._retention = retention
        self._spool_dir = spool_dir

    async def open(
        self, at: Address, request: ToolRequest, held: Held
    ) -> tuple[AssumedState[Session], Decided]:
        """Begin in the log what may begin; a call that is over at once is settled with it."""
        # What comes again is old: another worker may have died of it.
        assumed = self._assume(at, request) if held.job.deliveries == 1 else None
        first = None if assumed is None else await self._sprinted(assumed, at, request, held)

        async def decide(session: Session) -> Decision:
            decision = first if assumed is not None and session is assumed.state else None
            events, decided = decision or await self._decided(session, at, request, held)
            if isinstance(decided, Ready):
                await _check(held, decided)
            quick = held.run.quick if held.run is not None else None
            if not isinstance(decided, Ready) or quick is None:
                return events, decided
            return (*events, *settlement_events(decided.call, quick)), quick

        try:
            return await self._ledger.commit(at, decide, assumed=assumed)
        except (CommitTooLarge, ValueError):
            if held.run is None or held.run.quick is None:
                raise
            held.run.slow_down()
            return await self._ledger.commit(at, decide)

    def run(self, at: Address, ready: Ready) -> Run:
        """The run that a call is ready for."""
        return Run(at, ready, self._eventlog, self._ledger, self._retention, self._spool_dir)

    def _assume(self, at: Address, request: ToolRequest) -> AssumedState[Session] | None:
        """The session as the sender of the request knew it, unless this worker knows more."""
        assumed = told(at, request)
        behind = assumed is not None and self._ledger.is_behind(at, assumed)
        return None if behind else assumed

    async def _sprinted(
        self, assumed: AssumedState[Session], at: Address, request: ToolRequest, held: Held
    ) -> Decision | None:
        """Run a call that may run any number of times before its start is written.

        Should the assumed state be old, nothing has happened: such a call changes nothing.
        """
        if assumed.state.calls[0].retry != "pure":
            return None
        decision = await self._decided(assumed.state, at, request, held)
        ready = decision[1]
        # A brief is believed in nothing that a write would not prove: the tool itself says so too.
        if isinstance(ready, Ready) and ready.prepared.tool.retry == "pure":
            held.run = self.run(at, ready)
            await held.run.sprint()
        return decision

    async def _decided(
        self, session: Session, at: Address, request: ToolRequest, held: Held
    ) -> Decision:
        return await self._begins.decide(session, at, request, held.job)


async def _check(held: Held, ready: Ready) -> None:
    """Forget a run of the call as it was before somebody answered for it: it would settle nothing."""
    if held.run is not None and held.run.call != ready.call:
        await held.run.drop()
        held.run = None


def told(at: Address, request: ToolRequest) -> AssumedState[Session] | None:
    """The session as its owner knew it when it asked, as far as the call is concerned."""
    snapshot = request.snapshot
    if snapshot is None:
        return None
    session = session_from_snapshot(
        at.session_id, request.assistant_message_id, request.call_id, snapshot
    )
    return AssumedState(Versioned(session, Head(snapshot.position, snapshot.seq)), complete=False)
