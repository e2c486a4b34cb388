"""Measures how long work waits in its queues, so that an autoscaler starts more processes in time."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import SubjectRefused
from fairlead_eventlog.streams import TOOLS, WAKES
from fairlead_projector import metrics

log = logging.getLogger(__name__)

INTERVAL_S: Final = 5.0
POOL_PREFIX: Final = "tools-"


async def watch_queues(
    eventlog: EventLog,
    *,
    interval_s: float = INTERVAL_S,
    on_healthy: Callable[[], None] = lambda: None,
) -> None:
    """Measure all queues for ever."""
    while True:
        try:
            ages = await eventlog.waiting_work.read_all()
        except SubjectRefused as error:
            # The grants of an earlier release. Everything else works with them.
            log.warning(
                "ages of queues cannot be read: nothing scales by them; write the grants anew with"
                " `fairlead provision --nats-auth`",
                extra={"reason": str(error)},
            )
            on_healthy()
            await asyncio.Event().wait()
            raise
        for age in ages:
            metrics.WAITING.labels(age.consumer).set(age.waiting)
            if age.stream == WAKES.name:
                metrics.WAKE_AGE.set(age.oldest_age_s)
            elif age.stream == TOOLS.name:
                pool = age.consumer.removeprefix(POOL_PREFIX)
                metrics.TOOL_REQUEST_AGE.labels(pool).set(age.oldest_age_s)
            else:
                metrics.PROMPT_AGE.set(age.oldest_age_s)
        on_healthy()
        await asyncio.sleep(interval_s)
