"""Runs one command as a process: streams its output and ends everything that it started."""

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
from typing import Final, Literal, TypeAlias

from fairlead_service.supervise import cancel_and_wait
from fairlead_tools.shell import supervise

MARK: Final = "FAIRLEAD_CALL"
PIECE_BYTES: Final = 64 * 1024
# The supervisor needs this long to end its descendants; then it is killed itself.
END_S: Final = supervise.GRACE_S + 1.5
# After the end the rest of the output is in the pipe already.
DRAIN_S: Final = 1.0
REAP_S: Final = 0.002

OnOutput: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Receives each piece of output, in order."""


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command with its directory, environment, time and limits."""

    argv: tuple[str, ...]
    directory: int
    """An open directory, so that the command runs in the directory that was checked."""
    environment: Mapping[str, str]
    mark: str
    """A mark in the environment of every process of the command, to find them again."""
    timeout_s: float
    limits: Mapping[str, int] = field(default_factory=dict)
    output_bytes_max: int | None = None
    """A command that writes more is ended. What is kept of its output is decided elsewhere."""
    descriptors: tuple[int, ...] = ()
    """More open files that the command gets."""


Ended: TypeAlias = Literal["time", "processes", "output"]
"""The limit that ended a command: its time, too many processes, too much output."""


@dataclass(frozen=True, slots=True)
class CommandExit:
    """The exit code of a command; None when a limit ended it."""

    exit: int | None
    ended: Ended | None = None


async def run_command(command: ShellCommand, on_output: OnOutput) -> CommandExit:
    """Run a command. Afterwards nothing that it started is left, even after a cancellation."""
    report = os.memfd_create("supervisor-report", os.MFD_CLOEXEC)
    try:
        return await _run(command, on_output, report)
    finally:
        os.close(report)


async def _run(command: ShellCommand, on_output: OnOutput, report: int) -> CommandExit:
    process = await _start(command, report)
    output = _CommandOutput(process, on_output, command.output_bytes_max)
    reading = asyncio.create_task(output.read())
    code = None
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(command.timeout_s):
                code = await _wait_for_exit(process)
    finally:
        # Shielded, so that a second cancellation cannot stop the clean-up.
        await asyncio.shield(asyncio.ensure_future(_end(process, command.mark, reading)))
    if output.is_too_long:
        return CommandExit(None, "output")
    if code is None:
        return CommandExit(None, "time")
    if os.pread(report, len(supervise.TOO_MANY), 0) == supervise.TOO_MANY:
        return CommandExit(None, "processes")
    return CommandExit(supervise.SIGNALLED - code if code < 0 else code)


async def _start(command: ShellCommand, report: int) -> Process:
    limits = json.dumps(dict(command.limits))
    launch = (str(os.getpid()), str(command.directory), str(report), limits, *command.argv)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", supervise.__file__, *launch),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        env={**command.environment, MARK: command.mark},
        pass_fds=(command.directory, report, *command.descriptors),
        limit=PIECE_BYTES,
    )


async def _wait_for_exit(process: Process) -> int:
    """The exit code, as soon as the process ends.

    `Process.wait` would also wait for the pipe, which an escaped process may hold for ever.
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
        # The child watcher reports the exit code in a moment.
        await asyncio.sleep(REAP_S)
    return process.returncode


class _CommandOutput:
    """Reads the output of a command, and ends the command when the output is too long."""

    def __init__(self, process: Process, on_output: OnOutput, bytes_max: int | None) -> None:
        self._process = process
        self._on_output = on_output
        self._left = bytes_max
        self.is_too_long = False

    async def read(self) -> None:
        assert self._process.stdout is not None, "the process was started with a pipe"
        while piece := await self._process.stdout.read(PIECE_BYTES):
            if self._left is not None:
                self._left -= len(piece)
            if self._left is None or self._left >= 0:
                await self._on_output(piece)
            elif not self.is_too_long:
                self.is_too_long = True
                with suppress(ProcessLookupError):
                    self._process.terminate()


async def _end(process: Process, mark: str, reading: asyncio.Task[None]) -> None:
    """End everything that the command started, then read the rest of its output."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await _wait_for_exit(process)
    if process.returncode is None or process.returncode < 0:
        # The supervisor is stuck or was killed, perhaps by its own command.
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.to_thread(kill_marked, mark)
    await asyncio.wait({reading}, timeout=DRAIN_S)
    await cancel_and_wait(reading)


def kill_marked(mark: str, rounds: int = 100) -> int:
    """Kill every process with the mark until none is left. Returns how many were killed."""
    killed = 0
    for _ in range(rounds):
        pids = marked_processes(mark)
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        if not pids:
            break
    return killed


def marked_processes(mark: str) -> list[int]:
    """The ids of all processes with the mark."""
    variable, pids = f"{MARK}={mark}".encode(), list[int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if variable in (entry / "environ").read_bytes().split(b"\0"):
                    pids.append(int(entry.name))
    return pids
