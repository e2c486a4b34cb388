"""Sends wakes. A refused wake is sent again until the server takes it, or a runner has the session."""

import asyncio
import logging
import sys
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.session_cache import SessionCache
from fairlead_eventlog.session_follower import SessionFollower
from fairlead_ingest.settings import WakeTimings
from fairlead_schema.record import NewerCommit, RecordError
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.next_move import is_moving
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

# A session that the cache has lost since its command: only a confirmed look says whether it is owned.
NOWHERE: Final = sys.maxsize


class Waker:
    """Wakes sessions in the background, so that a receipt never waits for a wake."""

    def __init__(
        self,
        eventlog: EventLog,
        cache: SessionCache[Session],
        follower: SessionFollower[Session],
        timings: WakeTimings,
    ) -> None:
        self._wakes = eventlog.wakes
        self._cache = cache
        self._follower = follower
        self._timings = timings
        self._requested: dict[Address, int] = {}
        """The sessions to wake, each with a position up to which its runner must see the log."""
        self._waking: dict[Address, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def wake(self, at: Address) -> None:
        """Ask a runner to drain the session, which this process has just read or written."""
        known = self._cache.peek(at)
        self._requested[at] = NOWHERE if known is None else known.head.position
        if at not in self._waking:
            self._waking[at] = asyncio.create_task(self._wake_until_taken(at))

    def ensure_stop(self, at: Address) -> None:
        """Make sure that an interrupt is honoured, by another runner if the owner is dead.

        The session is woken only while the interrupt is open. A later wake would start the work
        again that the interrupt stopped.
        """
        task = asyncio.create_task(self._ensure_stop(at))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def shutdown(self) -> None:
        """Wait a short time for open wakes. The sweep finds the sessions of the others."""
        tasks = {*self._waking.values(), *self._stopping}
        if not tasks:
            return
        await asyncio.wait(tasks, timeout=self._timings.shutdown_s)
        await cancel_and_wait(*tasks)

    async def _ensure_stop(self, at: Address) -> None:
        try:
            session = (await self._cache.load_confirmed(at)).state
            if session.execution.owner is not None:
                await asyncio.sleep(self._timings.honour_s)
                session = (await self._cache.load_confirmed(at)).state
            if session.execution.interrupted:
                await self._leave_wake(at)
        except (LogError, RecordError) as error:
            _log_failure(at, error)

    async def _wake_until_taken(self, at: Address) -> None:
        """Wake again if somebody asked meanwhile: a wake may be older than the last commit."""
        try:
            while at in self._requested:
                await self._send_wake(at)
        finally:
            del self._waking[at]

    async def _send_wake(self, at: Address) -> None:
        waited, delay, position, refused = 0.0, self._timings.retry_s, NOWHERE, False
        while waited < self._timings.give_up_s:
            position = self._requested.pop(at, position)
            try:
                if refused and self._was_served(at, position):
                    return
                # A session that moved on or was interrupted meanwhile needs no wake. Where broadcasts
                # do not tell, the leader does.
                if waited and self._follower.peek(at) is None and not await self._is_moving(at):
                    return
                refused = not await self._leave_wake(at)
                if not refused or self._was_served(at, position):
                    return
            except LogError as error:
                _log_failure(at, error)
            except RecordError as error:
                # The session cannot be read, so no runner could do anything with a wake.
                _log_failure(at, error)
                return
            await asyncio.sleep(delay)
            waited, delay = waited + delay, min(delay * 2, self._timings.retry_s_max)

    async def _is_moving(self, at: Address) -> bool:
        try:
            return is_moving((await self._cache.load_confirmed(at)).state)
        except NewerCommit:
            return True  # A newer runner can read the session, and says whether it has work.

    def _was_served(self, at: Address, position: int) -> bool:
        """Whether a runner owned the session at a position or later, or it had no work there.

        This needs no confirmation: it stays true whatever came since. Nobody rests a session without
        having read it to its end, and the refused wake is that owner's own or comes after it.
        """
        known = self._follower.peek(at) or self._cache.peek(at)
        if known is None or known.head.position < position:
            return False
        return known.state.execution.owner is not None or not is_moving(known.state)

    async def _leave_wake(self, at: Address) -> bool:
        """Leave a wake with the last commit: the runner that has all before it need not read."""
        known = self._cache.peek(at)
        if known is None:
            return await self._wakes.wake(at)
        position, commit = known.head.position, known.encode_last()
        return await self._wakes.wake(at, position=position, commit=commit)


def _log_failure(at: Address, error: Exception) -> None:
    log.warning(
        "wake failed: the sweep wakes the session if no retry does",
        extra={"session_id": at.session_id, "reason": str(error)},
    )
