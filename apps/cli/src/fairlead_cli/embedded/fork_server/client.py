"""The supervisor's side of the fork server: starts it, asks it for forks, and waits for their ends."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from fairlead_cli.embedded import child_process
from fairlead_cli.embedded.child_process import LAUNCH, ChildProcess, ProcessSpec
from fairlead_cli.embedded.fork_server.request import ForkFiles, ForkRequest, send_request
from fairlead_cli.embedded.fork_server.shown_start import (
    ROOM_BYTES,
    ROOM_VARIABLE,
    environment_fits,
)
from fairlead_cli.embedded.launcher import KEEP_USER
from fairlead_cli.embedded.private_files import append_private
from fairlead_cli.errors import ProcessFailed

SERVER: Final = "fairlead_cli.embedded.fork_server.server"
RUN_MODULE: Final = (sys.executable, "-m")
# Python and the loader read these once, when a program is executed: a fork cannot have others.
READ_AT_START: Final = frozenset(
    {
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUNBUFFERED", "LD_LIBRARY_PATH", "LD_PRELOAD"),
        *("LANG", "LC_ALL", "LC_CTYPE"),
    }
)


class ForkedProcess:
    """A process that the fork server started. The server reports when it ends."""

    def __init__(
        self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._end = asyncio.create_task(self._read_exit(reader, writer))

    async def wait(self) -> int:
        return await asyncio.shield(self._end)

    def send_signal(self, signal: int) -> None:
        """Raises ProcessLookupError."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, signal)

    def kill(self) -> None:
        """Raises ProcessLookupError."""
        self.send_signal(signal.SIGKILL)

    async def _read_exit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        line = b""
        with suppress(OSError):
            line = await reader.readline()
        writer.close()
        # No line: the server died, and its forks with it.
        self.returncode = int(line) if line else -signal.SIGKILL
        return self.returncode


class ForkClient:
    """Starts processes through a fork server, and the fork server when it does not run."""

    def __init__(self, log: Path, env: Mapping[str, str]) -> None:
        self._log = log
        self._env = env
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, unless it runs. It imports in the background."""
        if sys.platform != "linux" or (self._process and self._process.poll() is None):
            return
        self.close()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        launch_options = (str(os.getpid()), str(int(signal.SIGKILL)), KEEP_USER, "--")
        with theirs, append_private(self._log) as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                (*LAUNCH, *launch_options, sys.executable, "-P", "-m", SERVER),
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                env={**self._env, ROOM_VARIABLE: "." * ROOM_BYTES},
                start_new_session=True,
            )

    async def spawn(self, spec: ProcessSpec) -> ChildProcess:
        """Start a process as a fork, or execute it if no fork can be like it. Raises ProcessFailed."""
        self.start()
        if self._control is None or not self._can_fork(spec):
            return await child_process.spawn(spec)
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                await self._send(self._control, spec, theirs)
            reader, writer = await asyncio.open_connection(sock=ours)
        except BaseException:
            ours.close()
            raise
        try:
            pid = int(await reader.readline())
        except (OSError, ValueError):
            writer.close()
            raise ProcessFailed("the fork server", "it ended", self._log) from None
        except asyncio.CancelledError:
            writer.close()
            raise
        return ForkedProcess(pid, reader, writer)

    async def _send(self, control: socket.socket, spec: ProcessSpec, status: socket.socket) -> None:
        with spec.standard_input.open("rb") as standard_input, append_private(spec.log) as log:
            files = ForkFiles(status.fileno(), standard_input.fileno(), log.fileno())
            try:
                # A server that still imports reads late, and a full buffer lets the sender wait.
                await asyncio.to_thread(send_request, control, _request(spec), files)
            except OSError:
                raise ProcessFailed("the fork server", "it ended", self._log) from None

    def close(self) -> None:
        """End the server, and its forks with it."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None

    def _can_fork(self, spec: ProcessSpec) -> bool:
        return (
            spec.argv[:2] == RUN_MODULE
            and spec.user == KEEP_USER
            and environment_fits(spec.env)
            and all(spec.env.get(name) == self._env.get(name) for name in READ_AT_START)
        )


def _request(spec: ProcessSpec) -> ForkRequest:
    module = spec.argv[len(RUN_MODULE)]
    return ForkRequest(spec.argv, module, str(spec.cwd), dict(spec.env), int(spec.death_signal))
