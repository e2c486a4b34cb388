"""Starts and stops one child process that cannot outlive its parent."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from fairlead_cli.embedded import launcher
from fairlead_cli.embedded.private_files import append_private

LAUNCH: Final = (sys.executable, "-I", "-S", str(Path(launcher.__file__).absolute()))


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """How to start a process, and how to stop it."""

    argv: tuple[str, ...]
    log: Path
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = launcher.KEEP_USER
    standard_input: Path = Path(os.devnull)
    stop_signal: signal.Signals = signal.SIGTERM
    # The kernel sends this signal when the parent dies without stopping the child.
    death_signal: signal.Signals = signal.SIGKILL
    grace_s: float = 10.0


class ChildProcess(Protocol):
    """A process that was started, like one of asyncio."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None:
        """The exit code, or the negative number of the signal that ended it; None while it runs."""

    async def wait(self) -> int: ...

    def send_signal(self, signal: int) -> None: ...

    def kill(self) -> None: ...


Spawn: TypeAlias = Callable[[ProcessSpec], Awaitable[ChildProcess]]


async def spawn(spec: ProcessSpec) -> ChildProcess:
    """Start the process in its own session, so that Ctrl-C in a terminal reaches only the parent."""
    launch_options = (str(os.getpid()), str(int(spec.death_signal)), spec.user, "--")
    with (
        spec.standard_input.open("rb") as standard_input,
        append_private(spec.log) as log,
    ):
        return await asyncio.create_subprocess_exec(
            *LAUNCH,
            *launch_options,
            *spec.argv,
            stdin=standard_input,
            stdout=log,
            stderr=log,
            cwd=spec.cwd,
            env=dict(spec.env),
            start_new_session=True,
        )


async def stop(process: ChildProcess, spec: ProcessSpec, *, hurry: asyncio.Event) -> None:
    """Send the stop signal, wait for the grace time, then kill. `hurry` ends the wait early."""
    with suppress(ProcessLookupError):
        process.send_signal(spec.stop_signal)
    exit_task = asyncio.ensure_future(process.wait())
    hurry_task = asyncio.ensure_future(hurry.wait())
    await asyncio.wait(
        {exit_task, hurry_task}, timeout=spec.grace_s, return_when=asyncio.FIRST_COMPLETED
    )
    hurry_task.cancel()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    await exit_task


def command_line(pid: int) -> str | None:
    """The command line of a process; None when it does not exist or is a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
        if status.rpartition(")")[2].split()[0] == "Z":
            return None
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except (OSError, IndexError):
        return None


def pid_exists(pid: int) -> bool:
    """Whether the pid is in use, by a process of any user or by a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def end_orphan(pid: int, marker: str, sig: signal.Signals, *, grace_s: float) -> None:
    """End a process that an earlier stack left, if its command line still contains the marker."""
    kill_at = asyncio.get_running_loop().time() + grace_s
    last_signal: signal.Signals | None = None
    while marker in (command_line(pid) or ""):
        overdue = asyncio.get_running_loop().time() > kill_at
        next_signal = signal.SIGKILL if overdue else sig
        if last_signal is not next_signal:
            with suppress(ProcessLookupError):
                os.kill(pid, next_signal)
            last_signal = next_signal
        await asyncio.sleep(0.05)
