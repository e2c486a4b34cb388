"""What the supervisor asks the fork server for: one message with three open files."""

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

REQUEST_BYTES_MAX: Final = 128 * 1024
FILES: Final = 3


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """A module to run as `__main__` in a fork."""

    argv: Sequence[str]
    """The command line that would start the same process without the server."""
    module: str
    cwd: str
    env: Mapping[str, str]
    death_signal: int


@dataclass(frozen=True, slots=True)
class ForkFiles:
    """The open files of one fork, by number."""

    status: int
    """Where the server writes the pid, and later the exit code."""
    standard_input: int
    log: int


def send_request(control: socket.socket, request: ForkRequest, files: ForkFiles) -> None:
    """Send a request. Raises OSError, if the server is gone."""
    message = json.dumps(asdict(request)).encode()
    socket.send_fds(control, [message], [files.status, files.standard_input, files.log])


def receive_request(control: socket.socket) -> tuple[ForkRequest, ForkFiles] | None:
    """The next request; None when the supervisor has closed its end."""
    message, numbers, _, _ = socket.recv_fds(control, REQUEST_BYTES_MAX, FILES)
    if not message:
        return None
    return ForkRequest(**json.loads(message)), ForkFiles(*numbers)
