"""Expected failures of commands. Each message says what to do.

CommandError
├── UsageError          the arguments do not fit together: exit 2
├── PortTaken           another program listens on the port: stop it or choose another port
├── StateLocked         another `fairlead up` uses the state directory
├── StateUnusable       the state directory cannot be written or entered
├── DiskFull            too little free space to keep the log durable
├── BinaryMissing       a wheel is not installed, or not for this machine
├── ProcessFailed       a process of the stack did not start: see its log
├── Unreachable         no server answers at the address: exit 3
├── Untrusted           the certificate of the server is refused: exit 3
├── OtherRelease        the server answers what this release does not understand: exit 3
├── TokenUnusable       the token cannot be read, so nothing was sent: exit 5
└── ServerRefused       the server answered with an error: exit 4
    └── AccessRefused   the key or token is missing, expired, or may not do this: exit 5
"""

from pathlib import Path
from typing import Final

from fairlead_cli.command_line.exit_codes import FAILED, NO_ACCESS, NO_SERVER, REFUSED, USAGE

LINE_LENGTH_MAX: Final = 400


class CommandError(Exception):
    """An expected failure. Its message is one line and says what to do."""

    exit_code = FAILED
    tag: str | None = None
    """The name of a refusal of the server, for programs."""


class UsageError(CommandError):
    exit_code = USAGE


class PortTaken(CommandError):
    def __init__(self, port: int, purpose: str, option: str) -> None:
        super().__init__(
            f"port {port} ({purpose}) is in use: stop what listens there, or choose another"
            f" with {option} (0 picks a free one)"
        )
        self.port = port


class StateLocked(CommandError):
    def __init__(self, state: Path, pid: int | None) -> None:
        who = f"pid {pid}" if pid else "another process"
        super().__init__(
            f"{state} is in use by a running `fairlead up` ({who}):"
            " stop that one, or choose another directory with --state"
        )
        self.pid = pid


class StateUnusable(CommandError):
    pass


class DiskFull(CommandError):
    def __init__(self, state: Path, free_mb: int, need_mb: int) -> None:
        super().__init__(
            f"{state} has {free_mb} MB free and needs {need_mb} MB:"
            " free some space, or choose another disk with --state"
        )


class BinaryMissing(CommandError):
    def __init__(self, name: str, dist: str) -> None:
        super().__init__(
            f"{name} was not found: install the wheel {dist} (`uv sync`), or put {name} on PATH"
        )


class ProcessFailed(CommandError):
    def __init__(self, name: str, reason: str, log: Path) -> None:
        last_line = _last_line(log)
        output = f"; its last output: {last_line}" if last_line else ""
        super().__init__(f"{name} did not start: {reason}{output} (log: {log})")
        self.log = log


class Unreachable(CommandError):
    exit_code = NO_SERVER

    def __init__(self, url: str) -> None:
        super().__init__(
            f"nothing answers at {url}: start it with `fairlead up`, or name it with --http"
        )


class Untrusted(CommandError):
    exit_code = NO_SERVER


class OtherRelease(CommandError):
    exit_code = NO_SERVER

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"{url} answers what this release does not understand ({reason}): check the address,"
            " and that client and server are of one release (`fairlead --version`)"
        )


class TokenUnusable(CommandError):
    exit_code = NO_ACCESS


class ServerRefused(CommandError):
    exit_code = REFUSED

    def __init__(self, status: int, message: str, tag: str | None = None) -> None:
        super().__init__(f"the server refused ({status}): {message}")
        self.status = status
        self.tag = tag


class AccessRefused(ServerRefused):
    exit_code = NO_ACCESS


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:LINE_LENGTH_MAX] if lines else ""
