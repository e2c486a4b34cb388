"""Removes the parts of uploads that died: their gateway or ingest was killed, and nobody goes on.

Every ingest does it. What another one has removed already is not there any more.
"""

import asyncio
import logging
import random
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.register_ports import OutputStore
from fairlead_service.supervise import describe

log = logging.getLogger(__name__)

LOOKS: Final = 4
"""How often somebody looks within the life of a part."""


async def remove_dead_uploads(attachments: OutputStore, *, life_s: float) -> None:
    """Look again and again, for as long as ingest runs."""
    while True:
        # Several processes that start together do not look together.
        await asyncio.sleep(life_s / LOOKS * random.uniform(0.5, 1.0))  # noqa: S311 - it guards nothing
        try:
            removed = await attachments.remove_unfinished(idle_s=life_s)
        except LogError as error:
            extra = {"reason": describe(error)}
            log.warning("parts of dead uploads not removed: tried again later", extra=extra)
            continue
        if removed:
            log.info("parts of dead uploads removed", extra={"uploads": removed})
