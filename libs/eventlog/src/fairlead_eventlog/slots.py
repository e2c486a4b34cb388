"""Counts the jobs that a process has at once."""

import asyncio
from collections.abc import Callable


class Slot:
    """One place for one job. A second release does nothing."""

    def __init__(self, release: Callable[[], None]) -> None:
        self._release: Callable[[], None] | None = release

    def release(self) -> None:
        """Free the place."""
        release, self._release = self._release, None
        if release is not None:
            release()


class Slots:
    """How many jobs a process may have at once. A job occupies a slot until its handler releases it.

    The count belongs to the process. A consumer that starts again still counts its earlier jobs.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._occupied = 0
        self._freed = asyncio.Event()

    @property
    def free(self) -> int:
        """How many more jobs the process can have now."""
        return self.limit - self._occupied

    def occupy(self, on_release: Callable[[], None] = lambda: None) -> Slot:
        """Give a job its slot. `on_release` runs once, after the slot is free again."""
        self._occupied += 1

        def release() -> None:
            self._occupied -= 1
            self._freed.set()
            on_release()

        return Slot(release)

    async def wait_until_free(self) -> None:
        """Wait until a job can have a slot."""
        while self.free <= 0:
            self._freed.clear()
            await self._freed.wait()
