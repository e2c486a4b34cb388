"""Watches how full the streams are, and warns well before one has no room."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from fairlead_eventlog.condition.stream_sizes import ALARM_SHARE, StreamSize
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import SubjectRefused
from fairlead_projector import metrics

log = logging.getLogger(__name__)

INTERVAL_S: Final = 30.0


async def watch_streams(
    eventlog: EventLog,
    *,
    interval_s: float = INTERVAL_S,
    on_healthy: Callable[[], None] = lambda: None,
) -> None:
    """Measure all streams for ever. A stream is warned of once, until it has room again."""
    warned: frozenset[str] = frozenset()
    while True:
        try:
            sizes = await eventlog.stream_sizes.read_all()
        except SubjectRefused as error:
            # The grants of an earlier release. Everything else works with them.
            log.warning(
                "sizes of streams cannot be read: nobody warns of a full one; write the grants anew"
                " with `fairlead provision --nats-auth`",
                extra={"reason": str(error)},
            )
            on_healthy()
            await asyncio.Event().wait()
            raise
        for size in sizes:
            metrics.STREAM_BYTES.labels(size.stream).set(size.bytes)
            metrics.STREAM_BYTES_MAX.labels(size.stream).set(size.bytes_max)
        full = [size for size in sizes if size.share >= ALARM_SHARE]
        for size in full:
            if size.stream not in warned:
                _warn(size)
        warned = frozenset(size.stream for size in full)
        on_healthy()
        await asyncio.sleep(interval_s)


def _warn(size: StreamSize) -> None:
    log.warning(
        "stream is nearly full: purge sessions, or raise its limit in [streams] and run"
        " `fairlead provision`",
        extra={"stream": size.stream, "bytes": size.bytes, "bytes_max": size.bytes_max},
    )
