"""Read your own writes: a read waits a little until the projection has caught up with the log."""

import asyncio
from collections.abc import Callable
from typing import Final

from fairlead_gateway.reads.read_model import ProjectionProgress, ReadModel
from fairlead_schema.subjects import Address

FIRST_PAUSE_S: Final = 0.002
PAUSE_S_MAX: Final = 0.1


async def wait_until_projected(
    read_model: ReadModel, at: Address, seq: int, *, timeout_s: float
) -> bool:
    """Wait until event `seq` is projected. False: timeout, or the session cannot be projected."""

    def is_projected(progress: ProjectionProgress | None) -> bool | None:
        if progress is None:
            return None
        return True if progress.seq >= seq else None if progress.broken is None else False

    return await _wait(read_model, at, is_projected, timeout_s=timeout_s)


async def wait_until_forgotten(read_model: ReadModel, at: Address, *, timeout_s: float) -> bool:
    """Wait until a purged session has no rows. False: timeout."""
    return await _wait(
        read_model, at, lambda progress: True if progress is None else None, timeout_s=timeout_s
    )


async def _wait(
    read_model: ReadModel,
    at: Address,
    decide: Callable[[ProjectionProgress | None], bool | None],
    *,
    timeout_s: float,
) -> bool:
    """Look at the progress of a session until it decides something. False at a timeout."""
    clock = asyncio.get_running_loop().time
    deadline, pause = clock() + timeout_s, FIRST_PAUSE_S
    while True:
        decided = decide(await read_model.progress(at))
        if decided is not None:
            return decided
        if clock() + pause > deadline:
            return False
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, PAUSE_S_MAX)
