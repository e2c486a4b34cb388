"""A tool server as a process of our own: its streams bounded, its end certain.

It runs in a process group of its own and with an environment that is listed, not inherited. The
group is ended with the connection; should this process be killed, the kernel ends the server.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, jsonrpc_message_adapter
from pydantic import ValidationError

from fairlead_tools.servers.limits import (
    MESSAGE_BYTES_MAX,
    NOISE_BYTES_MAX,
    NOISE_S,
    NOTIFICATIONS_MAX,
    WORDS_BYTES_MAX,
)

log = logging.getLogger(__name__)

INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
CHUNK_BYTES: Final = 64 * 1024
LEAVE_S: Final = 1.0
KILL_S: Final = 2.0
PR_SET_PDEATHSIG: Final = 1
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
LATE_S: Final = 1.0
# Nobody here listens to these.
UNHEARD: Final = frozenset({"notifications/message", "notifications/progress"})

_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


class Flood(Exception):
    """The server said more than a message may hold, or than is passed over."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How to start a server."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: str | None = None

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """What the process sees of our environment, and what it was given."""
        return {name: own[name] for name in INHERITED if name in own} | dict(self.env)


@dataclass(slots=True)
class ServerExit:
    """How a process ended, for whoever waits."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = "it ended"
    words: bytes = b""


@asynccontextmanager
async def start_server(
    command: ServerCommand, ending: ServerExit
) -> AsyncIterator[TransportStreams]:
    """The streams of a started process; it is gone when the block is left. Raises OSError."""
    process = await asyncio.create_subprocess_exec(
        *command.argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=command.environment(os.environ),
        cwd=command.directory,
        start_new_session=True,
        preexec_fn=_die_with_parent,
    )
    told, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    said, saying = anyio.create_memory_object_stream[SessionMessage](0)
    taken = NotificationFilter()
    tasks = [
        asyncio.create_task(_listen(process, told, taken, ending)),
        asyncio.create_task(_catch_up(told, taken)),
        asyncio.create_task(_speak(process, saying)),
        asyncio.create_task(_overhear(process, ending)),
    ]
    try:
        yield heard, said
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (told, heard, said, saying):
                stream.close()


async def _listen(
    process: asyncio.subprocess.Process,
    told: MemoryObjectSendStream[SessionMessage | Exception],
    taken: "NotificationFilter",
    ending: ServerExit,
) -> None:
    """Hand on every message that may be heard; closing the stream says that there is no more."""
    try:
        async for line in _lines(process):
            message = _message(line)
            if message is not None and taken.takes(message):
                await told.send(message)
            else:
                taken.passes(line)
    except Flood as flood:
        ending.why = str(flood)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        pass
    finally:
        told.close()
        ending.event.set()


async def _catch_up(
    told: MemoryObjectSendStream[SessionMessage | Exception], taken: "NotificationFilter"
) -> None:
    """Hand on, a little later, that tools have changed, when that was said too often to be heard."""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await asyncio.sleep(LATE_S)
            late, taken.late = taken.late, None
            if late is not None:
                await told.send(late)


async def _lines(process: asyncio.subprocess.Process) -> AsyncIterator[bytes]:
    assert process.stdout is not None
    read = bytearray()
    while chunk := await process.stdout.read(CHUNK_BYTES):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            read += line
            yield bytes(read)
            read.clear()
        read += rest
        if len(read) > MESSAGE_BYTES_MAX:
            raise Flood(f"it sent a message of more than {MESSAGE_BYTES_MAX} bytes")


def _message(line: bytes) -> SessionMessage | None:
    """A line as a message. What is none is passed over: some servers print greetings."""
    if not line.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        return None


@dataclass(slots=True)
class NotificationFilter:
    """How many notifications were taken in this second, and how much was passed over."""

    second: int = 0
    count: int = 0
    span: int = 0
    noise: int = 0
    late: SessionMessage | None = None
    now: Callable[[], float] = anyio.current_time

    def takes(self, message: SessionMessage) -> bool:
        """Whether a message is handed on: answers always, notifications up to a rate."""
        said = message.message
        if not isinstance(said, JSONRPCNotification):
            return True
        if said.method in UNHEARD:
            return False
        second = int(self.now())
        if second != self.second:
            self.second, self.count = second, 0
        self.count += 1
        if self.count > NOTIFICATIONS_MAX and said.method == TOOLS_CHANGED:
            self.late = message
        return self.count <= NOTIFICATIONS_MAX

    def passes(self, line: bytes) -> None:
        """Pass over a line that nobody listens to. Raises Flood where that is all there is."""
        span = int(self.now() / NOISE_S)
        if span != self.span:
            self.span, self.noise = span, 0
        self.noise += len(line)
        if self.noise > NOISE_BYTES_MAX:
            raise Flood(f"it said more than {NOISE_BYTES_MAX} bytes that nobody listens to")


async def _speak(
    process: asyncio.subprocess.Process, saying: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError, anyio.ClosedResourceError):
        async for message in saying:
            written = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(written.encode() + b"\n")
            await process.stdin.drain()


async def _overhear(process: asyncio.subprocess.Process, ending: ServerExit) -> None:
    """Keep the last words of the error stream, and let nothing else of it pile up."""
    assert process.stderr is not None
    while chunk := await process.stderr.read(CHUNK_BYTES):
        ending.words = (ending.words + chunk)[-WORDS_BYTES_MAX:]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input, then end the whole group: asked first, made then."""
    if process.stdin is not None:
        process.stdin.close()
    for wait_s, signal_ in ((LEAVE_S, signal.SIGTERM), (KILL_S, signal.SIGKILL)):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), wait_s)
        # The group outlives its leader: whoever it left behind is ended too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal_)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), KILL_S)
    # A pipe whose reading was paused would stay open, and so would one that a survivor holds.
    transport: asyncio.SubprocessTransport | None = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


def _die_with_parent() -> None:
    """In the child: be killed when the parent is."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
