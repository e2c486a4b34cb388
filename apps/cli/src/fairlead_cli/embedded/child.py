"""One child process: started with its log and its ties, asked to stop, made to stop."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead_cli.embedded import launch

LAUNCH: Final = (sys.executable, "-I", "-S", str(Path(launch.__file__).absolute()))


@dataclass(frozen=True, slots=True)
class Command:
    """What to run and how it ends."""

    argv: tuple[str, ...]
    log: Path
    cwd: Path
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    uid: int = launch.KEEP_USER
    stop_signal: signal.Signals = signal.SIGTERM
    # What it gets when we die without stopping it.
    death_signal: signal.Signals = signal.SIGKILL
    grace_s: float = 10.0


async def spawn(command: Command) -> asyncio.subprocess.Process:
    """Start it in a session of its own: a terminal's Ctrl-C reaches only us."""
    ties = (str(os.getpid()), str(int(command.death_signal)), str(command.uid), "--")
    with command.log.open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *LAUNCH,
            *ties,
            *command.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=command.cwd,
            env=dict(command.env),
            start_new_session=True,
        )


async def stop(
    process: asyncio.subprocess.Process, command: Command, *, hurry: asyncio.Event
) -> None:
    """Ask, wait, insist. Returns when it is gone; `hurry` cuts the waiting short."""
    with suppress(ProcessLookupError):
        process.send_signal(command.stop_signal)
    exited = asyncio.ensure_future(process.wait())
    hurried = asyncio.ensure_future(hurry.wait())
    await asyncio.wait(
        {exited, hurried}, timeout=command.grace_s, return_when=asyncio.FIRST_COMPLETED
    )
    hurried.cancel()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    await exited


def command_line(pid: int) -> str | None:
    """What a process runs; None when there is no such process, or only its remains."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
        if status.rpartition(")")[2].split()[0] == "Z":
            return None
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except (OSError, IndexError):
        return None


def exists(pid: int) -> bool:
    """Whether the pid is taken, be it by another user's process or by a dead one's remains."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def end_orphan(pid: int, marker: str, sig: signal.Signals, *, grace_s: float) -> None:
    """End what an earlier stack left behind, if that pid still is what it was."""
    insist_at = asyncio.get_running_loop().time() + grace_s
    sent: signal.Signals | None = None
    while marker in (command_line(pid) or ""):
        overdue = asyncio.get_running_loop().time() > insist_at
        wanted = signal.SIGKILL if overdue else sig
        if sent is not wanted:
            with suppress(ProcessLookupError):
                os.kill(pid, wanted)
            sent = wanted
        await asyncio.sleep(0.05)
