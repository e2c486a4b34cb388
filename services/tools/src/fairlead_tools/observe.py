"""Observes a location: one coherent sample of all its sources, in rendering order."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from fairlead_schema.context import ContextSample, Observation, ObserveContext, Unavailable
from fairlead_tools.sources import date, environment

log = logging.getLogger(__name__)

Source: TypeAlias = tuple[str, Callable[[], Observation]]


async def observe(asked: ObserveContext) -> ContextSample:
    """Every source, observed now. One that cannot be read is unavailable, never left out."""
    sources: tuple[Source, ...] = (
        (environment.KEY, lambda: environment.observe(asked.location)),
        (date.KEY, lambda: date.observe(datetime.now().astimezone().date())),
    )
    # Sources read the disk, which may be slow or hung: never on the event loop.
    return await asyncio.to_thread(
        lambda: ContextSample(observations=tuple(_observed(*source) for source in sources))
    )


def _observed(key: str, read: Callable[[], Observation]) -> Observation:
    try:
        return read()
    except (OSError, ValueError) as error:
        log.warning("source unavailable", extra={"key": key, "reason": str(error)})
        return Unavailable(key=key, reason=str(error))
