"""Managed outputs, which tools read like files though they are kept elsewhere."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from fairlead_tools.registry.tool import Context


class Outputs(Protocol):
    """Where managed outputs are kept."""

    def owns(self, path: str) -> bool:
        """Whether a path has the form of a managed output. Looks nothing up."""
        ...

    def local(self, path: str, context: Context) -> AbstractAsyncContextManager[Path | None]:
        """The output as a file for a while; None if there is none."""
        ...


class NoOutputs:
    """Nothing is kept."""

    def owns(self, _path: str) -> bool:
        return False

    @asynccontextmanager
    async def local(self, _path: str, _context: Context) -> AsyncIterator[Path | None]:
        yield None
