"""Runs Python on hostile bytes in a child process that is killed when it takes too long.

The program limits its own memory and processor time before it reads. The child gets no variable of
the worker's environment, so that a defect in a decoder reaches no secret there.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from dataclasses import dataclass

from fairlead_tools.registry.tool import CallFailed


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """How a program ended, and its standard output."""

    status: int
    output: bytes


async def run_python(
    *arguments: str, body: bytes, output_bytes_max: int, timeout_s: float | None = None
) -> ProgramOutput:
    """Run Python with standard input. Raises TimeoutError, CallFailed; a cancellation kills it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *arguments),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={},
        start_new_session=True,
    )
    writing = asyncio.create_task(_write(process, body))
    try:
        async with asyncio.timeout(timeout_s):
            output = await _read(process, output_bytes_max)
            return ProgramOutput(await process.wait(), output)
    finally:
        writing.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        # Reads what is left in the pipe, so that the child is reaped and its pipes are closed.
        await asyncio.gather(writing, process.wait(), return_exceptions=True)


async def _write(process: Process, body: bytes) -> None:
    assert process.stdin is not None, "the child was started with a pipe"
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(body)
        await process.stdin.drain()
    process.stdin.close()


async def _read(process: Process, bytes_max: int) -> bytes:
    assert process.stdout is not None, "the child was started with a pipe"
    output = bytearray()
    while piece := await process.stdout.read(1 << 16):
        output += piece
        if len(output) > bytes_max:
            raise CallFailed(f"The result is longer than {bytes_max} bytes")
    return bytes(output)
