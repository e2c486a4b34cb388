"""The process of a worker: a copy of this one, or a new interpreter."""

import asyncio
import gc
import os
import signal
import sys
import time
import traceback
import warnings
from contextlib import suppress
from typing import Final, NoReturn

from fairlead_projector.projection.workers.worker import run_worker

END_S: Final = 10.0
POLL_S: Final = 0.005
FILES_MAX: Final = 1 << 20

CAN_COPY: Final = sys.platform == "linux"
"""Elsewhere libraries of the system may not survive a fork without exec."""


class WorkerProcess:
    """A process that waits for its job, and ends when its orders end."""

    def __init__(self, pid: int, orders: int) -> None:
        self.pid = pid
        self._orders = orders
        self._returncode: int | None = None

    def give(self, line: bytes) -> None:
        """Give it its job. One that is dead already is noticed by `poll`."""
        with suppress(BrokenPipeError):
            os.write(self._orders, line)

    def poll(self) -> int | None:
        """How it ended, as `subprocess` says it; None while it runs."""
        if self._returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._returncode = os.waitstatus_to_exitcode(status)
        return self._returncode

    async def end(self) -> None:
        """End its orders, and wait until it is gone."""
        os.close(self._orders)
        deadline = time.monotonic() + END_S
        while self.poll() is None:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            await asyncio.sleep(POLL_S)


def copy_process() -> WorkerProcess:
    """A worker that is a copy of this process, so that it has nothing to import."""
    orders, ours = os.pipe()
    with warnings.catch_warnings():
        # Later releases of Python warn of copies while there are threads. Ours hold no lock that a
        # worker needs: they wait for names of hosts, or for the end of another process.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _become_worker(orders)
    os.close(orders)
    return WorkerProcess(pid, ours)


def start_process() -> WorkerProcess:
    """A worker that begins as a new interpreter. It takes more than a second of a core."""
    orders, ours = os.pipe()
    module = f"{__package__}.worker"
    arguments = [sys.executable, "-P", "-m", module]
    standard_input = [(os.POSIX_SPAWN_DUP2, orders, 0)]
    pid = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=standard_input)
    os.close(orders)
    return WorkerProcess(pid, ours)


def _become_worker(orders: int) -> NoReturn:
    """Work, and never return: the stack above belongs to the process that was copied.

    Nothing of that process is closed or collected here. Its files are, so that its connections end
    when it ends, and so that no handler of it can reach them.
    """
    status = 1
    try:
        gc.freeze()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(orders, 0)
        os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), FILES_MAX))
        sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115 - a number
        run_worker()
        status = 0
    except BaseException:  # noqa: BLE001 - it must not go on in the stack of the other process
        traceback.print_exc()
    finally:
        os._exit(status)
