"""Runs the HTML converter in a child process and kills it when it takes too long."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from typing import Final, Literal

from fairlead_tools.registry.tool import CallFailed

OUTPUT_BYTES_MAX: Final = 16 * 1024 * 1024
_PROGRAM: Final = ("-I", "-m", "fairlead_tools.web.markdown")


async def convert_page(html: str, output_format: Literal["markdown", "text"]) -> str:
    """A page as markdown or as plain text. Raises CallFailed; a cancellation ends the child."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *_PROGRAM, output_format),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,
    )
    writing = asyncio.create_task(_write(process, html.encode(errors="replace")))
    try:
        text = await _read(process)
        status = await process.wait()
    finally:
        writing.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        # Reads what is left in the pipe, so that the child is reaped and its pipes are closed.
        await asyncio.gather(writing, process.wait(), return_exceptions=True)
    if status != 0:
        raise CallFailed("The page cannot be converted; fetch it as html")
    return text.decode()


async def _write(process: Process, body: bytes) -> None:
    assert process.stdin is not None, "the child was started with a pipe"
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(body)
        await process.stdin.drain()
    process.stdin.close()


async def _read(process: Process) -> bytes:
    assert process.stdout is not None, "the child was started with a pipe"
    text = bytearray()
    while piece := await process.stdout.read(1 << 16):
        text += piece
        if len(text) > OUTPUT_BYTES_MAX:
            raise CallFailed(f"The page is longer than {OUTPUT_BYTES_MAX} bytes once converted")
    return bytes(text)
