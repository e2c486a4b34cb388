"""Waits for something that a decision needs, as long as nothing new in the log makes it void."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.session_cache import Versioned
from fairlead_runner.drain.staged_writer import StagedWriter, StaleDecision
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.next_move import is_moving
from fairlead_session.state.session import Session

T = TypeVar("T")

LOOK_S_MIN: Final = 0.05
LOOK_S_MAX: Final = 0.5


def is_stopped(newer: Session) -> bool:
    """Whether somebody interrupted the session, or left it nothing to do."""
    return newer.execution.interrupted or not is_moving(newer)


def is_changed(_newer: Session) -> bool:
    """Whether anything is new: a commit that was decided before cannot be written then."""
    return True


async def wait_while_fresh(
    work: Coroutine[Any, Any, T],
    writer: StagedWriter,
    nudged: asyncio.Event,
    *,
    ends: Callable[[Session], bool] = is_changed,
) -> T:
    """The result of some work. Raises StaleDecision, and cancels the work, if news end it.

    A session that nobody owns yet gets no nudge, so that the log is also looked at now and then.
    """
    working, look_s = asyncio.create_task(work), LOOK_S_MIN
    try:
        while not await _ends_within(look_s, working, nudged):
            nudged.clear()
            newer = await _find_news(writer)
            if newer is not None and ends(newer.state):
                writer.adopt(newer)
                raise StaleDecision
            look_s = min(look_s * 2, LOOK_S_MAX)
        return await working
    finally:
        await cancel_and_wait(working)


async def _ends_within(seconds: float, working: asyncio.Task[Any], nudged: asyncio.Event) -> bool:
    nudge = asyncio.create_task(nudged.wait())
    try:
        await asyncio.wait({working, nudge}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return working.done()
    finally:
        nudge.cancel()


async def _find_news(writer: StagedWriter) -> Versioned[Session] | None:
    try:
        return await writer.find_news()
    except LogUnavailable:
        return None  # Only a failed write may end the decision.
