"""Waits until no session and no person has anything left to do."""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress

from fairlead_eventlog.errors import LogError
from fairlead_schema.record import Recorded
from fairlead_session.calls.child_ids import child_of
from fairlead_testing.session_driver import events_of
from fairlead_testing.stack import Stack
from tests.chaos.promises import QUIET_S, Promised, Violation, what_is_missing


async def wait_until_quiet(
    up: Stack, promised: Promised, sessions: Iterable[str], *, within_s: float = QUIET_S
) -> tuple[dict[str, list[Recorded]], list[Violation]]:
    """The log of every session and sub-agent when nothing moves any more.

    A session that does not finish is stranded.
    """
    deadline, waiting = time.monotonic() + within_s, list(sessions)
    logs: dict[str, list[Recorded]] = {}
    while waiting and time.monotonic() < deadline:
        await _read_quiet(up, promised, waiting, logs, deadline)
        if not waiting:
            # A log may have moved after it was read.
            waiting = [session for session, log in logs.items() if await _read(up, session) != log]
    stranded: list[Violation] = []
    for session in waiting:
        logs[session] = await _read(up, session)
        missing = what_is_missing(session, logs[session], promised) or ("it never comes to rest",)
        stranded += [Violation("stranded", session, reason) for reason in missing]
    return logs, stranded


async def _read_quiet(
    up: Stack,
    promised: Promised,
    waiting: list[str],
    logs: dict[str, list[Recorded]],
    deadline: float,
) -> None:
    """Take each session from those that wait as soon as it has nothing left to do."""
    while waiting and time.monotonic() < deadline:
        log = await _read(up, waiting[-1])
        if log and not what_is_missing(waiting[-1], log, promised):
            session = waiting.pop()
            logs[session] = log
            below = [child for child in _children(session, log) if child not in logs]
            waiting += [child for child in below if await _read(up, child)]
        else:
            await asyncio.sleep(0.1)


async def _read(up: Stack, session: str) -> list[Recorded]:
    async with asyncio.timeout(QUIET_S):
        while True:
            with suppress(LogError):
                return await up.events(session)
            await asyncio.sleep(0.1)


def _children(session: str, log: list[Recorded]) -> list[str]:
    """The sessions that may answer the calls of this one."""
    return [
        child_of(session, event.assistant_message_id, event.call_id)
        for event in events_of(log, "tool.called")
        if event.tool == "task"
    ]
