"""Runs one command and ends everything that the command starts.

A program of its own that uses the standard library alone. As the subreaper of its descendants it
inherits those that detach, so it finds them however often they fork. It ends them when the command
ends, when it receives SIGTERM, and when the worker that started it dies.

    supervise.py <worker's pid> <descriptor of the directory> <limits as JSON> <command...>
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# Between SIGTERM and SIGKILL.
GRACE_S = 3.0
LOOK_S = 0.05
CANNOT_RUN = 126
SIGNALLED = 128

SIGNALS = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
LIMITS = {
    "cpu_s": resource.RLIMIT_CPU,
    "memory_bytes": resource.RLIMIT_AS,
    "processes": resource.RLIMIT_NPROC,
    "file_bytes": resource.RLIMIT_FSIZE,
}


def main(argv: list[str]) -> int:
    """Run the command to its end. Returns its exit code as a shell would."""
    worker, directory, limits, *command = argv
    control = ctypes.CDLL(None).prctl
    control(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    control(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(worker):
        # The worker died before the death signal was set.
        return SIGNALLED + signal.SIGTERM
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    os.fchdir(int(directory))
    os.close(int(directory))
    child = os.fork()
    if child == 0:
        exec_command(command, json.loads(limits))
    _release_pipe()
    status: dict[int, int] = {}
    while child not in status and signal.sigwait(SIGNALS) == signal.SIGCHLD:
        status |= reap_children()
    for sign in (signal.SIGTERM, signal.SIGKILL):
        status |= end_descendants(sign)
    code = os.waitstatus_to_exitcode(status.get(child, signal.SIGKILL))
    return SIGNALLED - code if code < 0 else code


def exec_command(command: list[str], limits: Mapping[str, int]) -> None:
    """Replace this process by the command, in its own session and within the limits."""
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for name, most in limits.items():
            _, hard = resource.getrlimit(LIMITS[name])
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(LIMITS[name], (bound, bound))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.execvp(command[0], command)  # noqa: S606 - to run a command is what this is for
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(CANNOT_RUN)


def end_descendants(sign: signal.Signals) -> dict[int, int]:
    """Signal every descendant until none is left or the time is over. Returns their statuses."""
    deadline = time.monotonic() + GRACE_S
    signalled: set[int] = set()
    statuses = reap_children()
    # A process that detaches becomes a child of this one: without children there are no descendants.
    while has_children() and (remaining := list(descendants())) and time.monotonic() < deadline:
        # Parents first, so that they do not report the end of their children.
        for pid in remaining:
            if sign == signal.SIGKILL or pid not in signalled:
                _signal(pid, sign)
                # A stopped process handles signals only after it continues.
                _signal(pid, signal.SIGCONT)
        signalled.update(remaining)
        signal.sigtimedwait({signal.SIGCHLD}, LOOK_S)
        statuses |= reap_children()
    return statuses


def reap_children() -> dict[int, int]:
    """The children that have ended since the last call, with their statuses."""
    statuses: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return statuses
        if pid == 0:
            return statuses
        statuses[pid] = status


def has_children() -> bool:
    """Whether there is any child left, alive or not yet reaped."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants() -> Iterator[int]:
    """The ids of all running descendants of this process."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - no imports to wait for
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        if state != b"Z":
            children.setdefault(int(parent), []).append(int(entry))
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        yield from below
        waiting += below


def _signal(pid: int, sign: signal.Signals) -> None:
    try:
        os.kill(pid, sign)
    except OSError:
        return


def _release_pipe() -> None:
    """Close this process's ends of the pipe, so that it closes when the command's processes end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
