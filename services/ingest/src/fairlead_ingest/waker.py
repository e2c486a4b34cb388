"""Leaves wakes. A refused one is tried again until it is taken or the session is seen to move."""

import asyncio
import logging
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.session_cache import SessionCache
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.next_move import is_moving
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

RETRY_S: Final = 0.05
RETRY_S_MAX: Final = 1.0
# After this long the sweep has the session.
GIVE_UP_S: Final = 15.0
# How long a departure waits for wakes that nobody takes.
SETTLE_S: Final = 3.0
# A living owner honours an interrupt well within this.
HONOUR_S: Final = 1.0


class Waker:
    """Wakes in the background, so that a receipt never waits for one."""

    def __init__(self, eventlog: EventLog, folded: SessionCache[Session]) -> None:
        self._wakes = eventlog.wakes
        self._folded = folded
        self._asked: set[Address] = set()
        self._running: dict[Address, asyncio.Task[None]] = {}
        self._attending: set[asyncio.Task[None]] = set()

    def wake(self, at: Address) -> None:
        """Ask for the session to be drained."""
        self._asked.add(at)
        if at not in self._running:
            self._running[at] = asyncio.create_task(self._serve(at))

    def attend(self, at: Address) -> None:
        """See that an interrupt is honoured, if need be by somebody who takes over.

        No more than that: a wake that comes after the interrupt would start what it stopped.
        """
        task = asyncio.create_task(self._attend(at))
        self._attending.add(task)
        task.add_done_callback(self._attending.discard)

    async def settle(self) -> None:
        """Wait for what is under way, but not for a server that is away: the sweep has the rest."""
        under_way = {*self._running.values(), *self._attending}
        if not under_way:
            return
        _, late = await asyncio.wait(under_way, timeout=SETTLE_S)
        await cancel_and_wait(*late)

    async def _attend(self, at: Address) -> None:
        try:
            session = (await self._folded.load(at)).state
            if session.execution.owner is not None:
                await asyncio.sleep(HONOUR_S)
                session = (await self._folded.load(at)).state
            if session.execution.interrupted:
                await self._wakes.wake(at)
        except (LogError, RecordError) as error:
            _say(at, error)

    async def _serve(self, at: Address) -> None:
        """Wake until nobody asked since: a wake under way may be older than the last commit."""
        try:
            while at in self._asked:
                await self._insist(at)
        finally:
            del self._running[at]

    async def _insist(self, at: Address) -> None:
        waited, delay = 0.0, RETRY_S
        while waited < GIVE_UP_S:
            self._asked.discard(at)
            try:
                # Look first: what moved meanwhile, or was interrupted, wants no wake any more.
                if waited and not is_moving((await self._folded.load(at)).state):
                    return
                if await self._wakes.wake(at):
                    return
            except LogError as error:
                _say(at, error)
            except RecordError as error:
                # The session has stopped: nobody could do anything with a wake.
                _say(at, error)
                return
            await asyncio.sleep(delay)
            waited, delay = waited + delay, min(delay * 2, RETRY_S_MAX)


def _say(at: Address, error: Exception) -> None:
    log.warning("wake failed", extra={"session_id": at.session_id, "reason": str(error)})
