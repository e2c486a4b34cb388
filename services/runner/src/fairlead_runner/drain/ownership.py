"""Owns a session for one drain: claims it, rests, hands it over, gives it up."""

from contextlib import suppress
from typing import Literal

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.process_life import confirmed_life
from fairlead_runner.drain.log_waiter import LogWaiter
from fairlead_runner.drain.staged_writer import StagedWriter, StaleDecision
from fairlead_runner.runner_context import RunnerContext
from fairlead_schema.events.execution import RestReason
from fairlead_session.execution.ownership import (
    OwnedByOther,
    ProcessLife,
    claim,
    needs_release,
    owns,
    release,
)
from fairlead_session.execution.recovery import stop_open_work
from fairlead_session.next_move import is_moving
from fairlead_session.state.session import Session


class Ownership:
    """One runner's ownership of one session."""

    def __init__(self, context: RunnerContext, writer: StagedWriter, waiter: LogWaiter) -> None:
        self._context = context
        self._writer = writer
        self._waiter = waiter

    def holds(self) -> bool:
        """Whether this runner owns the session, durably or by a staged claim."""
        session = self._writer.session
        return owns(session, self._context.runner, session.execution.generation)

    async def claim(self) -> bool:
        """Own the session, at least by a staged claim. False: a live runner owns it."""
        if self.holds():
            return True
        session = self._writer.session
        events = claim(session, self._context.runner, await self._ping_owner(session))
        if isinstance(events, OwnedByOther):
            return False
        self._writer.stage(*events)
        return True

    async def _ping_owner(self, session: Session) -> ProcessLife | None:
        """Ask another owner whether it lives, each time anew: a new owner may have come.

        A runner that leaves does not wait for the answer, and takes over nothing.
        """
        owner = session.execution.owner
        if owner is None or owner.runner == self._context.runner:
            return None
        settings = self._context.settings
        look = confirmed_life(
            self._context.eventlog.liveness,
            owner.runner,
            timeout_s=settings.config.runner.ping_timeout_s,
            second_look_s=settings.timings.owner_second_look_s,
        )
        return await self._waiter.unless_shutdown(look) or "alive"

    async def rest(
        self, reason: RestReason, detail: str | None = None, *, wake_at: int | None = None
    ) -> Literal[True]:
        """Release the session. A claim that was never written needs no release.

        Returns True, the result of a move after which the session rests. Raises StaleDecision.
        """
        writer = self._writer
        if not self.holds():
            raise StaleDecision  # The session passed to another runner during a wait.
        if not needs_release(writer.durable, reason):
            writer.unstage()
            return True
        writer.stage(release(writer.session, reason, detail=detail, wake_at=wake_at))
        await writer.commit()
        return True

    async def hand_over(self) -> None:
        """Release the session before the process ends. If that fails, the next owner recovers."""
        writer = self._writer
        writer.unstage()
        if self.holds():
            with suppress(StaleDecision, LogError):
                writer.stage(release(writer.session, "handover"))
                await writer.commit()

    async def give_up(self, reason: str) -> None:
        """Settle what is open and rest as failed, because this runner cannot go on."""
        writer = self._writer
        await writer.reload()
        if writer.session.execution.owner is None and is_moving(writer.session):
            events = claim(writer.session, self._context.runner, None)
            assert not isinstance(events, OwnedByOther), "an unowned session can be claimed"
            writer.stage(*events)
        if self.holds():
            with suppress(StaleDecision):
                writer.stage(*stop_open_work(writer.session))
                writer.stage(release(writer.session, "failed", detail=reason))
                await writer.commit()
