"""Managed outputs for tools: the complete text behind the path in a bounded output."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from fairlead_eventlog.register_ports import OutputStore
from fairlead_schema.ids import TenantId
from fairlead_schema.tools.content import MANAGED_PREFIX, managed_id
from fairlead_tools.registry.tool import CallContext
from fairlead_tools.spool import PREFIX


class ManagedOutputs:
    """Managed outputs for tools that read files. A call reaches the outputs of its own tenant."""

    def is_managed(self, path: str) -> bool:
        """Whether a path has the form of a managed output. Does not look it up."""
        return path.startswith(MANAGED_PREFIX)

    def open_file(
        self, path: str, context: CallContext
    ) -> AbstractAsyncContextManager[Path | None]:
        """Open the output as a temporary file; None if there is none. Raises LogUnavailable."""
        return context.open_managed(path)


async def stream_output(
    outputs: OutputStore, tenant: TenantId, path: str
) -> AsyncIterator[bytes] | None:
    """A managed output piece by piece; None if this tenant has none at the path.

    Raises LogUnavailable at once or while reading.
    """
    output_id = managed_id(path)
    if output_id is None or await outputs.stat(tenant, output_id) is None:
        return None
    return outputs.get(tenant, output_id)


@asynccontextmanager
async def open_output_file(
    outputs: OutputStore, tenant: TenantId, path: str, *, directory: Path
) -> AsyncIterator[Path | None]:
    """Copy a managed output to a temporary file for the block; None if the tenant has none.

    Tools page and search the file without holding it in memory. Raises LogUnavailable.
    """
    pieces = await stream_output(outputs, tenant, path)
    if pieces is None:
        yield None
        return
    descriptor, name = tempfile.mkstemp(prefix=f"{PREFIX}{os.getpid()}-", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            async for piece in pieces:
                file.write(piece)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)  # noqa: ASYNC240 - one unlink of a local file
