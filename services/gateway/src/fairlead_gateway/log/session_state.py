"""Loads a session from its log, or follows the log until the session meets a condition."""

import asyncio
from collections.abc import Callable

from fairlead_eventlog.ports import START
from fairlead_eventlog.session_cache import Readable, SessionCache, Versioned
from fairlead_gateway.http.sse import auto_close
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import SessionIsStored, SessionNotFound
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session


async def load_session(runtime: Runtime, at: Address) -> Session:
    """The session as the log holds it. Raises SessionNotFound, SessionIsStored, LogError."""
    return _require_session(await _session_cache(runtime).load_confirmed(at)).state


async def load_readable(runtime: Runtime, at: Address) -> Readable[Session]:
    """The session as far as its log can be read, and why the rest cannot. A stored one is only its marker.

    Raises SessionNotFound.
    """
    readable = await _session_cache(runtime).load_readable(at)
    if readable.error is None and readable.versioned.state.stored is None:
        _require_session(readable.versioned)
    elif await runtime.nats().log.end(at) == START:
        # It was purged, and the unreadable part of its log is not erased yet.
        raise SessionNotFound(at.session_id)
    return readable


async def wait_until(
    runtime: Runtime, at: Address, condition: Callable[[Session], bool], *, timeout_s: float
) -> bool:
    """Follow a session until it meets the condition. False: timeout, or the process stops."""
    following = asyncio.ensure_future(_follow_until(runtime, at, condition))
    shutdown = asyncio.ensure_future(runtime.shutdown.wait())
    try:
        tasks = {following, shutdown}
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not following.done():
            return False
        following.result()
        return True
    finally:
        await cancel_and_wait(following, shutdown)


async def _follow_until(
    runtime: Runtime, at: Address, condition: Callable[[Session], bool]
) -> None:
    cache = _session_cache(runtime)
    session = await cache.load_confirmed(at)
    if condition(_require_session(session).state):
        return
    async with auto_close(runtime.nats().log.tail(at, after=session.head.seq)) as tail:
        async for stored in tail:
            session = cache.fold(session, stored)
            if condition(_require_session(session).state):
                return


def _session_cache(runtime: Runtime) -> SessionCache[Session]:
    nats = runtime.nats()
    return SessionCache(nats.log, nats.snapshots, SESSION_FOLD, capacity=1)


def _require_session(session: Versioned[Session]) -> Versioned[Session]:
    stored = session.state.stored
    if stored is not None:
        raise SessionIsStored(session.state.id, stored.file.name)
    if session.state.profile is None:
        raise SessionNotFound(session.state.id)
    return session
