"""Managed outputs, which tools read like files although they are stored elsewhere."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from fairlead_tools.registry.tool import CallContext


class OutputFiles(Protocol):
    """Opens managed outputs as files."""

    def is_managed(self, path: str) -> bool:
        """Whether a path has the form of a managed output. Does not look it up."""
        ...

    def open_file(
        self, path: str, context: CallContext
    ) -> AbstractAsyncContextManager[Path | None]:
        """Open the output as a temporary file; None if there is none."""
        ...


class NoOutputFiles:
    """There are no managed outputs."""

    def is_managed(self, _path: str) -> bool:
        return False

    @asynccontextmanager
    async def open_file(self, _path: str, _context: CallContext) -> AsyncIterator[Path | None]:
        yield None
