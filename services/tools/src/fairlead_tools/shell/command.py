"""One command as a process: its output heard piece by piece, its end certain."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from fairlead_service.supervise import cancel_and_wait
from fairlead_tools.shell import supervise

MARK: Final = "FAIRLEAD_CALL"
PIECE_BYTES: Final = 64 * 1024
# The supervisor asks, waits, orders and looks once more; then it is ended itself.
END_S: Final = supervise.GRACE_S + 1.5
# What is still in the pipe when everything has ended is there at once.
DRAIN_S: Final = 1.0
REAP_S: Final = 0.002

OnOutput: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Is given each piece of output, in order."""


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """What to run, where, with what, for how long."""

    argv: tuple[str, ...]
    directory: int
    """An open directory: what was checked is what the command finds itself in."""
    environment: Mapping[str, str]
    mark: str
    """Stands in the environment of every process of the command, so that it can be found."""
    timeout_s: float
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommandExit:
    """How a command fared: its exit code, or that its time was over."""

    exit: int | None


async def run_command(command: ShellCommand, heard: OnOutput) -> CommandExit:
    """Run a command; afterwards nothing that it started is left, also when this is cancelled."""
    process = await _start(command)
    assert process.stdout is not None, "it was asked for"
    hearing = asyncio.create_task(_read_output(process.stdout, heard))
    try:
        async with asyncio.timeout(command.timeout_s):
            code = await _wait_for_exit(process)
        ended = CommandExit(supervise.SIGNALLED - code if code < 0 else code)
    except TimeoutError:
        ended = CommandExit(None)
    finally:
        # A second cancellation does not keep it from being finished.
        await asyncio.shield(asyncio.ensure_future(_end(process, command.mark, hearing)))
    return ended


async def _start(command: ShellCommand) -> Process:
    limits = json.dumps(dict(command.limits))
    launch = (str(os.getpid()), str(command.directory), limits, *command.argv)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", supervise.__file__, *launch),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        env={**command.environment, MARK: command.mark},
        pass_fds=(command.directory,),
        limit=PIECE_BYTES,
    )


async def _wait_for_exit(process: Process) -> int:
    """The exit code, as soon as there is one.

    `Process.wait` would also wait for the pipe, which a process that got away may hold for ever.
    """
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        gone.set()
    else:
        loop.add_reader(descriptor, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
    while process.returncode is None:  # noqa: ASYNC110 - there is nothing to wait on
        # Whoever reaps children tells the loop about it in a moment.
        await asyncio.sleep(REAP_S)
    return process.returncode


async def _read_output(pipe: asyncio.StreamReader, heard: OnOutput) -> None:
    while piece := await pipe.read(PIECE_BYTES):
        await heard(piece)


async def _end(process: Process, mark: str, hearing: asyncio.Task[None]) -> None:
    """See to it that everything has ended; what was said until then is heard."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await _wait_for_exit(process)
    if process.returncode is None or process.returncode < 0:
        # The supervisor is stuck, or was killed itself, perhaps by its own command.
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.to_thread(kill_marked, mark)
    await asyncio.wait({hearing}, timeout=DRAIN_S)
    await cancel_and_wait(hearing)


def kill_marked(mark: str, rounds: int = 100) -> int:
    """Kill every process that bears the mark, until there is none; how many that were."""
    killed = 0
    for _ in range(rounds):
        found = marked_processes(mark)
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        if not found:
            break
    return killed


def marked_processes(mark: str) -> list[int]:
    """Every process that bears the mark."""
    wanted, found = f"{MARK}={mark}".encode(), list[int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found
