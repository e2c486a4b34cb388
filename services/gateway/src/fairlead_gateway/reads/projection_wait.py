"""Read your own writes: a read waits a little until the projection has caught up with the log."""

import asyncio
from typing import Final

from fairlead_gateway.reads.read_model import ReadModel
from fairlead_schema.subjects import Address

FIRST_PAUSE_S: Final = 0.002
PAUSE_S_MAX: Final = 0.1


async def wait_until_projected(
    read_model: ReadModel, at: Address, seq: int, *, timeout_s: float
) -> bool:
    """Wait until event `seq` is projected. False: timeout, or the session cannot be projected."""
    clock = asyncio.get_running_loop().time
    deadline, pause = clock() + timeout_s, FIRST_PAUSE_S
    while True:
        progress = await read_model.progress(at)
        if progress is not None and progress.seq >= seq:
            return True
        if (progress is not None and progress.broken is not None) or clock() + pause > deadline:
            return False
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, PAUSE_S_MAX)
