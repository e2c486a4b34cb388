"""Measures what the sandbox adds to a command: the same command inside and outside, in turns."""

import os
import time
from pathlib import Path
from statistics import median
from typing import Final

from fairlead_schema.subjects import Address
from fairlead_service.config.sections import ToolsConfig
from fairlead_tools.private_directory import open_private_directory
from fairlead_tools.shell.command import ShellCommand, run_command
from fairlead_tools.shell.confinement import find_confinement
from fairlead_tools.shell.environment import command_environment
from fairlead_tools.shell.sandbox import Sandbox, SandboxPlace, sandbox_descriptors

ADDED_MS: Final = "sandbox adds to a command, ms"
ADDED_MS_MAX: Final = 15.0
COMMAND: Final = ("/bin/sh", "-c", ":")
AT: Final = Address("default", "ses_bench")


async def measure_sandbox(directory: Path, *, rounds: int) -> dict[str, float]:
    """The figures of the sandbox; none where no sandbox works."""
    sandbox = find_confinement(ToolsConfig()).sandbox
    if sandbox is None:
        return {}
    temporary = open_private_directory(str(directory / "private")).session_directory(AT)
    outside: list[float] = []
    inside: list[float] = []
    for _ in range(rounds):
        outside.append(await _time_command(directory, None, temporary))
        inside.append(await _time_command(directory, sandbox, temporary))
    return {
        "command, ms": median(outside) * 1000,
        ADDED_MS: (median(inside) - median(outside)) * 1000,
    }


async def _time_command(location: Path, sandbox: Sandbox | None, temporary: Path) -> float:
    descriptor = os.open(location, os.O_RDONLY)
    start = time.perf_counter()
    try:
        with sandbox_descriptors() as inner:
            place = SandboxPlace(location, location, temporary)
            argv = COMMAND if sandbox is None else sandbox.wrap(COMMAND, place, inner)
            command = ShellCommand(
                argv=argv,
                directory=descriptor,
                environment=command_environment(os.environ),
                mark="bench",
                timeout_s=60.0,
                limits={"processes": 512},
                descriptors=inner.all,
            )
            await run_command(command, _drop)
    finally:
        os.close(descriptor)
    return time.perf_counter() - start


async def _drop(_piece: bytes) -> None:
    """Drop the output."""
