"""The fork server: imports every service once, then forks for each request on its standard input.

A fork starts with everything imported, so a service is up in a moment, and the memory of the code is
shared. The server has no threads and no event loop, because a fork copies neither.
"""

import ctypes
import gc
import os
import runpy
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import Final

from fairlead_cli.embedded.fork_server.request import ForkFiles, ForkRequest, receive_request
from fairlead_cli.embedded.fork_server.shown_start import show_start
from fairlead_cli.embedded.launcher import PR_SET_PDEATHSIG
from fairlead_schema.model import build_models

# What the services import when they start, and what they import only when they run.
PRELOADED: Final = (
    *(
        f"fairlead_{name}.app"
        for name in ("ingest", "projector", "tools", "runner", "gateway", "hooks")
    ),
    "fairlead_cli.commands.stack.sim",
    *("uvloop", "uvicorn.lifespan.on", "uvicorn.loops.uvloop"),
)


class ForkServer:
    """Forks, and reports the pid and the exit code of each fork to whoever asked for it."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._status: dict[int, socket.socket] = {}
        self._exits, self._exit = socket.socketpair()

    def serve(self) -> tuple[ForkRequest, ForkFiles] | None:
        """Fork until nobody asks any more. Returns in a fork too: with the request for it."""
        self._exit.settimeout(0)
        signal.set_wakeup_fd(self._exit.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
        while True:
            ready, _, _ = select.select([self._control, self._exits], [], [])
            if self._exits in ready:
                self._exits.recv(4096)
                self._report_exits()
            if self._control in ready:
                received = receive_request(self._control)
                if received is None or self._fork(received[1]):
                    return received

    def _fork(self, files: ForkFiles) -> bool:
        """Whether this is the fork."""
        pid = os.fork()
        if pid == 0:
            self._close_in_fork()
            return True
        for number in (files.standard_input, files.log):
            os.close(number)
        self._status[pid] = socket.socket(fileno=files.status)
        _report(self._status[pid], pid)
        return False

    def _report_exits(self) -> None:
        while self._status:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with self._status.pop(pid) as connection:
                _report(connection, os.waitstatus_to_exitcode(status))

    def _close_in_fork(self) -> None:
        """Give back the server's signals and connections: they are the server's alone."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for connection in (self._control, self._exits, self._exit, *self._status.values()):
            connection.close()


def _report(connection: socket.socket, number: int) -> None:
    # It fails when nobody waits for this fork any more.
    with suppress(OSError):
        connection.sendall(b"%d\n" % number)


def become(request: ForkRequest, files: ForkFiles, parent: int) -> None:
    """Turn a fork into a process like one that was executed by `launcher`."""
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, request.death_signal, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    for number, standard in ((files.standard_input, 0), (files.log, 1), (files.log, 2)):
        os.dup2(number, standard)
    for number in (files.status, files.standard_input, files.log):
        os.close(number)
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    time.tzset()
    show_start(request.argv, request.env)


def main() -> None:
    """Import, serve, and in a fork run the module that was asked for."""
    for module in PRELOADED:
        import_module(module)
    build_models()
    gc.collect()
    gc.freeze()
    server = os.getpid()
    received = ForkServer(socket.socket(fileno=os.dup(0))).serve()
    if received is None:
        return
    request, files = received
    become(request, files, server)
    sys.argv = list(request.argv[2:])
    runpy.run_module(request.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
