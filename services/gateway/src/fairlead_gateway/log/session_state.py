"""A session folded from the log, now or when something holds of it."""

import asyncio
from collections.abc import Callable

from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_gateway.http.sse import closed
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import SessionNotFound
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session


async def folded(runtime: Runtime, at: Address) -> Session:
    """The session as the log holds it. Raises SessionNotFound, Unavailable or LogError."""
    return _existing(await _folds(runtime).load(at)).state


async def until(
    runtime: Runtime, at: Address, holds: Callable[[Session], bool], *, timeout_s: float
) -> bool:
    """Follow a session until something holds of it. False: not in time, or this process ends."""
    following = asyncio.ensure_future(_until(runtime, at, holds))
    closing = asyncio.ensure_future(runtime.closing.wait())
    try:
        waited = {following, closing}
        await asyncio.wait(waited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not following.done():
            return False
        following.result()
        return True
    finally:
        await cancel_and_wait(following, closing)


async def _until(runtime: Runtime, at: Address, holds: Callable[[Session], bool]) -> None:
    folds = _folds(runtime)
    known = await folds.load(at)
    if holds(_existing(known).state):
        return
    async with closed(runtime.medium().log.tail(at, after=known.head.seq)) as tail:
        async for stored in tail:
            known = folds.fold(known, stored)
            if holds(_existing(known).state):
                return


def _folds(runtime: Runtime) -> SessionCache[Session]:
    medium = runtime.medium()
    return SessionCache(medium.log, medium.snapshots, SESSION_FOLD, capacity=1)


def _existing(known: Versioned[Session]) -> Versioned[Session]:
    if known.state.profile is None:
        raise SessionNotFound(known.state.id)
    return known
