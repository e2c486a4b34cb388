"""Runs one command and ends everything that the command starts.

A program of its own that uses the standard library alone. As the subreaper of its descendants it
inherits those that detach, so it finds them however often they fork. It ends them when the command
ends, when it receives SIGTERM, and when the worker that started it dies.

    supervise.py <worker's pid> <descriptor of the directory> <report> <limits as JSON> <command...>

`report` is the descriptor of a file: the supervisor writes there that it ended the command.
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
    # Counts what a process may write. Address space that it only reserves does not count, because
    # many programs reserve more than any machine has.
    "memory_bytes": resource.RLIMIT_DATA,
    "file_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}
# The kernel counts processes for each user and not for each command, and not at all for root. So the
# supervisor counts them itself: this often, and sooner when the machine has many more threads.
COUNT_S = 1.0
GLANCE_S = 0.02
TOO_MANY = b"processes"
# The kernel's own limit is for all threads of the user, so it leaves room for those of others. It
# only keeps a flood of processes small until the supervisor has counted it.
OTHERS_THREADS = 1_024


def main(argv: list[str]) -> int:
    """Run the command to its end. Returns its exit code as a shell would."""
    worker, directory, report, limits_json, *command = argv
    limits = json.loads(limits_json)
    processes_max = limits.pop("processes", None)
    os.set_inheritable(int(report), False)  # noqa: FBT003
    control = ctypes.CDLL(None).prctl
    control(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    control(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(worker):
        # The worker died before the death signal was set.
        return SIGNALLED + signal.SIGTERM
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    os.fchdir(int(directory))
    os.close(int(directory))
    _come_first()
    child = os.fork()
    if child == 0:
        exec_command(command, limits, processes_max)
    _release_pipe()
    status = wait_for_end(child, processes_max, int(report))
    for sign in (signal.SIGTERM, signal.SIGKILL):
        status |= end_descendants(sign)
    code = os.waitstatus_to_exitcode(status.get(child, signal.SIGKILL))
    return SIGNALLED - code if code < 0 else code


def wait_for_end(child: int, processes_max: int | None, report: int) -> dict[int, int]:
    """Wait until the command ends, a signal asks for its end, or it has too many processes.

    Returns the statuses of the children that have ended.
    """
    statuses: dict[int, int] = {}
    census = None if processes_max is None else Census(processes_max)
    while child not in statuses:
        received = signal.sigtimedwait(SIGNALS, GLANCE_S) if census else signal.sigwaitinfo(SIGNALS)
        if received is not None and received.si_signo != signal.SIGCHLD:
            break
        if received is not None:
            statuses |= reap_children()
        if census is not None and census.is_over():
            os.write(report, TOO_MANY)
            # The end of a sandbox program is the end of all processes in its namespace.
            _signal(child, signal.SIGKILL)
            stop_descendants()
            break
    return statuses


class Census:
    """Counts the processes of a command. A full count reads `/proc`, so a glance comes first."""

    def __init__(self, processes_max: int) -> None:
        self._processes_max = processes_max
        self._threads = thread_count()
        self._counted = time.monotonic()

    def is_over(self) -> bool:
        """Whether the command has more processes than it may."""
        threads, now = thread_count(), time.monotonic()
        if threads - self._threads <= self._processes_max // 4 and now - self._counted < COUNT_S:
            return False
        self._threads, self._counted = threads, now
        return sum(1 for _ in descendants()) > self._processes_max


def thread_count() -> int:
    """How many threads the whole machine has."""
    with open("/proc/loadavg", "rb") as file:  # noqa: PTH123
        return int(file.read().split()[3].partition(b"/")[2])


def stop_descendants() -> None:
    """Stop every descendant, so that none can start another one before all are killed."""
    deadline = time.monotonic() + GRACE_S
    stopped: set[int] = set()
    while (fresh := set(descendants()) - stopped) and time.monotonic() < deadline:
        for pid in fresh:
            _signal(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        _signal(pid, signal.SIGKILL)


def _come_first() -> None:
    """Run before all other processes, where that is allowed, as it is for root.

    The kernel does not limit the processes of root. A supervisor that waits for its turn among
    thousands of them cannot end them.
    """
    try:
        priority = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, priority)
    except OSError:
        return


def exec_command(command: list[str], limits: Mapping[str, int], processes_max: int | None) -> None:
    """Replace this process by the command, in its own session and within the limits."""
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for name, most in limits.items():
            _limit(LIMITS[name], most)
        if processes_max is not None:
            _limit(resource.RLIMIT_NPROC, thread_count() + OTHERS_THREADS + processes_max)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.execvp(command[0], command)  # noqa: S606 - to run a command is what this is for
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(CANNOT_RUN)


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (bound, bound))


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
