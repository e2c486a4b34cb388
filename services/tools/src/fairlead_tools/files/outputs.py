"""Managed outputs, which tools read like files though they are kept elsewhere."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from fairlead_tools.registry.tool import CallContext


class OutputFiles(Protocol):
    """Where managed outputs are kept."""

    def is_managed(self, path: str) -> bool:
        """Whether a path has the form of a managed output. Looks nothing up."""
        ...

    def open_file(
        self, path: str, context: CallContext
    ) -> AbstractAsyncContextManager[Path | None]:
        """The output as a file for a while; None if there is none."""
        ...


class NoOutputFiles:
    """Nothing is kept."""

    def is_managed(self, _path: str) -> bool:
        return False

    @asynccontextmanager
    async def open_file(self, _path: str, _context: CallContext) -> AsyncIterator[Path | None]:
        yield None
