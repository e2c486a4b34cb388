"""Keeps a large body in a temporary file, so that it is verified before anything is written."""

import asyncio
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from typing import BinaryIO

from starlette.exceptions import HTTPException
from starlette.requests import Request

from fairlead_gateway.http.request_parser import REQUEST_TIMEOUT
from fairlead_schema.errors import PayloadTooLarge


async def spool_body(
    request: Request, file: BinaryIO, *, bytes_max: int, stall_s: float, setting: str
) -> int:
    """Write the body to a file; the answer is its size. Raises PayloadTooLarge, or 408 if it stalls."""
    refusal = PayloadTooLarge(f"The body exceeds {bytes_max} bytes: see {setting}")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > bytes_max:
        raise refusal
    size, chunks = 0, aiter(request.stream())
    with suppress(StopAsyncIteration):
        while True:
            try:
                async with asyncio.timeout(stall_s):
                    chunk = await anext(chunks)
            except TimeoutError:
                text = f"The body stood still for {stall_s:g} s"
                raise HTTPException(REQUEST_TIMEOUT, text, {"connection": "close"}) from None
            size += len(chunk)
            if size > bytes_max:
                raise refusal
            file.write(chunk)
    file.seek(0)
    return size


def open_spool() -> BinaryIO:
    """A file that nobody else can open, and that is gone when it is closed."""
    return tempfile.TemporaryFile(prefix="fairlead-import-")


def write_spool(file: BinaryIO, lines: Iterable[bytes]) -> None:
    """Write lines, and go back to the first one."""
    file.writelines(lines)
    file.seek(0)
