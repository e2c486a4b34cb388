"""Tells clients that the log was restored from a backup, so that they start again (ADR 0030).

Answers with events name the incarnation of the log in a header. A client that sends it back with its
cursor learns that the cursor is of another incarnation, although the log may have such a place again.
"""

import asyncio
from typing import Final

from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import CursorExpired, InvalidCursor

LOG_HEADER: Final = "fairlead-log"
START_AGAIN: Final = "start again from the beginning, without a cursor"


def log_headers(runtime: Runtime) -> dict[str, str]:
    """The header that names the incarnation of the log; empty before it is known."""
    incarnation = runtime.nats().status.current.incarnation
    return {} if incarnation is None else {LOG_HEADER: incarnation.id}


def check_cursor(runtime: Runtime, *, after: int, log: str | None, head: int | None) -> None:
    """Refuse a cursor of another log, or one beyond the end of the session.

    Raises CursorExpired, InvalidCursor. `head` is None if the end cannot be read.
    """
    current = log_headers(runtime).get(LOG_HEADER)
    if log is not None and current is not None and log != current:
        raise CursorExpired(f"The log was restored from a backup: {START_AGAIN}")
    if head is not None and after > head:
        raise InvalidCursor(
            f"Cursor {after} is beyond the end of the session, {head}: {START_AGAIN}"
        )


async def end_with_restore(runtime: Runtime) -> None:
    """Wait until the log is restored. Raises CursorExpired then."""
    restored = asyncio.Event()
    unregister = runtime.nats().status.on_restore(restored.set)
    try:
        await restored.wait()
    finally:
        unregister()
    raise CursorExpired(f"The log was restored from a backup: {START_AGAIN}")
