"""The first phase of a call: one commit that starts it, settles it, or asks a person."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from fairlead_eventlog.errors import CommitTooLarge
from fairlead_eventlog.ports import Head
from fairlead_eventlog.session_cache import Versioned
from fairlead_eventlog.session_writer import AssumedState, Written
from fairlead_session.calls.lifecycle import NotOpen, Succeeded, settlement_events
from fairlead_session.calls.snapshot import session_from_snapshot
from fairlead_session.state.session import Session
from fairlead_tools.calls.decision import (
    AnsweredElsewhere,
    BeginDecider,
    Decision,
    LeftToOthers,
    Runnable,
    SettledAtOnce,
    WaitsForAnswer,
    WaitsForQuota,
)
from fairlead_tools.calls.log import CallLog
from fairlead_tools.calls.request import TakenRequest
from fairlead_tools.calls.run import Ready, RunPhase

Begun: TypeAlias = (
    Ready
    | WaitsForAnswer
    | WaitsForQuota
    | LeftToOthers
    | AnsweredElsewhere
    | SettledAtOnce
    | NotOpen
)
"""How a call began. Only a ready one runs."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """What a worker assumes of a call before it writes, and what it did on that assumption."""

    assumed: AssumedState[Session] | None = None
    decision: Decision | None = None
    """The decision from the assumed state, if it is taken already."""
    ready: Ready | None = None
    """A pure call whose tool was started; with its outcome, if the tool is over."""

    @property
    def succeeded(self) -> Succeeded | None:
        """The result of a tool that is over, and well."""
        outcome = None if self.ready is None else self.ready.outcome
        return outcome if isinstance(outcome, Succeeded) else None


class BeginPhase:
    """Begins calls for one worker."""

    def __init__(self, decider: BeginDecider, log: CallLog, runs: RunPhase) -> None:
        self._decider = decider
        self._log = log
        self._runs = runs

    @asynccontextmanager
    async def speculate(self, request: TakenRequest) -> AsyncIterator[Speculation]:
        """Run a pure tool before its start is written. At the end of the block the tool is stopped.

        A pure tool changes nothing, so a run from an outdated snapshot does no harm (docs/adr/0020).
        """
        assumed = self._assumed_state(request)
        if assumed is None or assumed.state.calls[0].retry != "pure":
            yield Speculation(assumed)
            return
        decision = await self._decider.decide(assumed.state, request)
        runnable = decision[1]
        # A request is only a hint: the registered tool has to be pure too.
        if not isinstance(runnable, Runnable) or runnable.prepared.tool.retry != "pure":
            yield Speculation(assumed, decision)
            return
        ready = self._runs.prepare(runnable)
        try:
            yield Speculation(assumed, decision, await self._runs.run_speculatively(ready))
        finally:
            await self._runs.close(ready)

    async def begin(
        self, request: TakenRequest, speculation: Speculation
    ) -> Written[Session, Begun]:
        """Write how the call begins. A pure call that is over already is settled in this commit."""
        decide = partial(self._decide, request, speculation, speculation.succeeded)
        try:
            written = await self._log.commit(request.at, decide, assumed=speculation.assumed)
        except (CommitTooLarge, ValueError):
            if speculation.succeeded is None:
                raise
            # The start and the result do not fit in one commit, or the log cannot hold the result.
            decide = partial(self._decide, request, speculation, None)
            written = await self._log.commit(request.at, decide)
        after, verdict = written.after, written.value
        if not isinstance(verdict, Runnable):
            return Written(after, verdict)
        return Written(after, await self._ready(verdict, speculation.ready))

    async def _decide(
        self,
        request: TakenRequest,
        speculation: Speculation,
        succeeded: Succeeded | None,
        session: Session,
    ) -> Decision:
        assumed, decision = speculation.assumed, speculation.decision
        if decision is None or assumed is None or session is not assumed.state:
            decision = await self._decider.decide(session, request)
        events, verdict = decision
        if succeeded is None or not isinstance(verdict, Runnable):
            return decision
        if speculation.ready is None or speculation.ready.call != verdict.call:
            return decision
        return (*events, *settlement_events(verdict.call, succeeded)), SettledAtOnce("succeeded")

    async def _ready(self, runnable: Runnable, speculative: Ready | None) -> Ready:
        """The speculative run, if it is for the call as the log holds it now; else a new run."""
        if speculative is not None and speculative.call == runnable.call:
            return speculative
        if speculative is not None:
            # A person answered for the call since. A result of the earlier run settles nothing.
            await self._runs.close(speculative)
        return self._runs.prepare(runnable)

    def _assumed_state(self, request: TakenRequest) -> AssumedState[Session] | None:
        """The session as the sender of the request knew it, unless this worker knows more.

        A repeated delivery is old, and another worker may have died of it: the log decides.
        """
        snapshot = request.snapshot
        if snapshot is None or request.deliveries > 1:
            return None
        session = session_from_snapshot(
            request.at.session_id, request.assistant_message_id, request.call_id, snapshot
        )
        head = Head(snapshot.position, snapshot.seq)
        assumed = AssumedState(Versioned(session, head), complete=False)
        updated = self._log.update(request.at, assumed)
        # This worker may have settled the call already, for an earlier request.
        return updated if updated is not None and updated.state.calls else None
