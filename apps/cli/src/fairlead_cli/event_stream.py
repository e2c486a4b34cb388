"""Server-sent events as a client reads them: frames, and a stream that survives its connection."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final, NamedTuple, TypeAlias

from fairlead_cli.errors import Unreachable

DELAY_S_MIN: Final = 0.1
DELAY_S_MAX: Final = 2.0
FAILURE_EVENT: Final = "effect/httpapi/stream/failure"


class Frame(NamedTuple):
    """One event of a stream; a durable one has the seq to resume after."""

    data: str
    seq: int | None = None
    event: str = "message"


OPENED: Final = Frame("", event="opened")
"""The server has answered; what follows may be a long silence."""

Open: TypeAlias = Callable[[int | None], AsyncGenerator[Frame, None]]
"""Opens the stream after a sequence, and says OPENED first. Raises Unreachable when nobody answers."""


async def frames(lines: AsyncIterator[str]) -> AsyncGenerator[Frame, None]:
    """Group the lines of one response. Comments and unknown fields say nothing to us."""
    fields: dict[str, list[str]] = {}
    async for line in lines:
        name, _, value = line.partition(":")
        if line and name:
            fields.setdefault(name, []).append(value.removeprefix(" "))
        if line == "":
            if "data" in fields:
                yield _frame(fields)
            fields = {}


async def resumed(
    open_: Open,
    *,
    after: int | None = None,
    attempts_max: int | None = None,
    on_reconnect: Callable[[], None] = lambda: None,
) -> AsyncGenerator[Frame, None]:
    """Every durable frame once and in order, and live ones as they come, across reconnects.

    The first connection must succeed. Raises Unreachable after `attempts_max` failures in a row.
    """
    delay_s, failures, connected = DELAY_S_MIN, 0, False
    while True:
        try:
            async with aclosing(open_(after)) as stream:
                async for frame in stream:
                    if frame.event == FAILURE_EVENT:
                        break
                    connected, failures, delay_s = True, 0, DELAY_S_MIN
                    if frame is OPENED or _seen(frame, after):
                        continue
                    after = after if frame.seq is None else frame.seq
                    yield frame
        except Unreachable:
            failures += 1
            if not connected or failures == attempts_max:
                raise
        connected = True
        await asyncio.sleep(delay_s)
        delay_s = min(delay_s * 2, DELAY_S_MAX)
        on_reconnect()


def _seen(frame: Frame, after: int | None) -> bool:
    return after is not None and frame.seq is not None and frame.seq <= after


def _frame(fields: dict[str, list[str]]) -> Frame:
    last_id = fields.get("id", [""])[-1]
    return Frame(
        data="\n".join(fields["data"]),
        seq=int(last_id) if last_id.isdigit() else None,
        event=fields.get("event", ["message"])[-1],
    )
