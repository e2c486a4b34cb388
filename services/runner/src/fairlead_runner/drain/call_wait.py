"""Waits for the open calls of a session: requests them, waits a short while, then parks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Final

from fairlead_runner.calls.requests import CallRequest, orphaned_calls, unstarted_calls
from fairlead_runner.drain.drain_context import DrainContext
from fairlead_runner.drain.log_waiter import LOOK_S_MIN
from fairlead_runner.drain.staged_writer import StaleDecision
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.calls.answerers import waits_for_others
from fairlead_session.state.session import Session

# A stream that is complete is not written for so long: quick calls are settled by then, and the end
# of the stream and of the step are one commit.
HOLD_S: Final = 0.05


class CallWait:
    """The wait for calls, for one drain."""

    def __init__(self, parts: DrainContext) -> None:
        self._parts = parts

    async def run(self) -> bool:
        """Request every call that nobody works on, and wait for workers. True: the session rests.

        Where no worker runs a call, the session parks at once, and its place is free.
        """
        writer = self._parts.writer
        requested = unstarted_calls(writer.session)
        await self._parts.calls.send(requested)
        async with self._search_for_orphans() as search:
            is_parked = writer.durable.execution.owner is None and (
                writer.durable.execution.rested == "parked"
            )
            if writer.is_holding and await self._settles_soon(requested, within_s=HOLD_S):
                return False
            if is_parked:
                writer.unstage()
            else:
                await self._write()
            if not is_parked and await self._settles_soon(requested):
                return False
            if not await self._ends(search):
                return False
        return is_parked or await self._parts.ownership.rest("parked")

    async def _write(self) -> None:
        """Write what is staged or held. Raises StaleDecision."""
        if not self._parts.ownership.holds():
            raise StaleDecision  # The session passed to another runner during a wait.
        await self._parts.writer.commit()

    async def _settles_soon(
        self, requested: list[CallRequest], *, within_s: float | None = None
    ) -> bool:
        """Wait for workers a short while. True: there is something to do.

        Without a free place in the runner the while is shorter: other sessions may need the place.
        """
        context, clock = self._parts.runner, asyncio.get_running_loop().time
        crowded_at = clock() + context.settings.timings.crowded_wait_s

        def ends(session: Session) -> bool:
            is_crowded = context.places.free <= 0 and clock() >= crowded_at
            return is_crowded or _can_go_on(session, requested) or waits_for_others(session)

        tools_wait_s = context.settings.config.runner.tools_wait_s
        wait_s = tools_wait_s if within_s is None else min(within_s, tools_wait_s)
        await self._parts.waiter.until(ends, within_s=wait_s)
        return _can_go_on(self._parts.writer.durable, requested)

    async def _ends(self, search: asyncio.Task[None]) -> bool:
        """Wait for the end of the search. False: the session was stopped, or this runner leaves."""
        await asyncio.wait({search}, timeout=LOOK_S_MIN)
        await self._parts.waiter.until(
            lambda session: search.done() or session.execution.interrupted, within_s=inf
        )
        if search.done():
            search.result()
        return search.done()

    @asynccontextmanager
    async def _search_for_orphans(self) -> AsyncIterator[asyncio.Task[None]]:
        """Search beside the wait for calls whose worker is gone: two looks at a worker take a while."""
        search = asyncio.create_task(self._request_orphans(self._parts.writer.session))
        try:
            yield search
        finally:
            await cancel_and_wait(search)

    async def _request_orphans(self, session: Session) -> None:
        orphans = await orphaned_calls(self._parts.runner, session)
        await self._parts.calls.send_again(orphans, session.execution.generation)


def _can_go_on(session: Session, requested: list[CallRequest]) -> bool:
    """Whether calls need no more waiting: all are settled, they are stopped, or one was answered."""
    if not session.calls or session.execution.interrupted:
        return True
    return any(call not in requested for call in unstarted_calls(session))
