"""A tool server as a child process: its streams are bounded, and it never outlives its connection.

The server runs in its own process group, with listed environment variables only. The group is ended
with the connection. If the worker is killed, the kernel kills the server.

The stdio transport of the MCP library is not used: it bounds neither a message nor a flood of them.
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
from typing import Final, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, jsonrpc_message_adapter
from pydantic import ValidationError

from fairlead_tools.servers.limits import (
    ERROR_TAIL_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    NOISE_BYTES_MAX,
    NOISE_S,
    NOTIFICATIONS_MAX,
)

log = logging.getLogger(__name__)

INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
CHUNK_BYTES: Final = 64 * 1024
LEAVE_S: Final = 1.0
KILL_S: Final = 2.0
PR_SET_PDEATHSIG: Final = 1
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
LATE_S: Final = 1.0
# The worker does not read these.
IGNORED: Final = frozenset({"notifications/message", "notifications/progress"})

_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


class Flood(Exception):
    """The server sent a message that is too long, or too much that is no message."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How to start a server."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: str | None = None

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """The variables of the process: a few of the worker's own, and those of the configuration."""
        return {name: own[name] for name in INHERITED if name in own} | dict(self.env)


@dataclass(slots=True)
class ServerExit:
    """Whether and why a process ended."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str = "it ended"
    error_tail: bytes = b""
    """The end of its standard error."""


Messages: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Sink: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]


@asynccontextmanager
async def start_server(
    command: ServerCommand, server_exit: ServerExit
) -> AsyncIterator[tuple[Messages, MemoryObjectSendStream[SessionMessage]]]:
    """Start the process and yield its streams. The process has ended after the block.

    Raises OSError.
    """
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
    incoming_sink, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing_sink, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    notifications = NotificationFilter()
    tasks = [
        asyncio.create_task(_read_messages(process, incoming_sink, notifications, server_exit)),
        asyncio.create_task(_send_late_change(incoming_sink, notifications)),
        asyncio.create_task(_write_messages(process, outgoing)),
        asyncio.create_task(_read_errors(process, server_exit)),
    ]
    try:
        yield incoming, outgoing_sink
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (incoming_sink, incoming, outgoing_sink, outgoing):
                stream.close()


async def _read_messages(
    process: asyncio.subprocess.Process,
    sink: Sink,
    notifications: "NotificationFilter",
    server_exit: ServerExit,
) -> None:
    """Pass on every message that the filter accepts. The closed stream marks the end."""
    try:
        async for line in _lines(process):
            message = _message(line)
            if message is not None and notifications.accepts(message):
                await sink.send(message)
            else:
                notifications.count_noise(line)
    except Flood as flood:
        server_exit.reason = str(flood)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        pass
    finally:
        sink.close()
        server_exit.event.set()


async def _send_late_change(sink: Sink, notifications: "NotificationFilter") -> None:
    """Pass on, once a second, a change of the tools that the rate limit held back."""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await asyncio.sleep(LATE_S)
            late, notifications.late = notifications.late, None
            if late is not None:
                await sink.send(late)


async def _lines(process: asyncio.subprocess.Process) -> AsyncIterator[bytes]:
    assert process.stdout is not None
    buffer = bytearray()
    while chunk := await process.stdout.read(CHUNK_BYTES):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            buffer += line
            yield bytes(buffer)
            buffer.clear()
        buffer += rest
        if len(buffer) > MESSAGE_BYTES_MAX:
            raise Flood(f"it sent a message of more than {MESSAGE_BYTES_MAX} bytes")


def _message(line: bytes) -> SessionMessage | None:
    """The message of a line; None for other text, because some servers print greetings."""
    if not line.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        return None


@dataclass(slots=True)
class NotificationFilter:
    """Limits the rate of notifications, and the bytes that are no message or have no listener."""

    second: int = 0
    count: int = 0
    span: int = 0
    noise: int = 0
    late: SessionMessage | None = None
    now: Callable[[], float] = anyio.current_time

    def accepts(self, message: SessionMessage) -> bool:
        """Whether to pass a message on: answers always, notifications up to a rate."""
        content = message.message
        if not isinstance(content, JSONRPCNotification):
            return True
        if content.method in IGNORED:
            return False
        second = int(self.now())
        if second != self.second:
            self.second, self.count = second, 0
        self.count += 1
        if self.count > NOTIFICATIONS_MAX and content.method == TOOLS_CHANGED:
            self.late = message
        return self.count <= NOTIFICATIONS_MAX

    def count_noise(self, line: bytes) -> None:
        """Count a line that is dropped. Raises Flood when there are too many bytes of them."""
        span = int(self.now() / NOISE_S)
        if span != self.span:
            self.span, self.noise = span, 0
        self.noise += len(line)
        if self.noise > NOISE_BYTES_MAX:
            raise Flood(
                f"it sent more than {NOISE_BYTES_MAX} bytes that are no message for the worker"
            )


async def _write_messages(
    process: asyncio.subprocess.Process, outgoing: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError, anyio.ClosedResourceError):
        async for message in outgoing:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()


async def _read_errors(process: asyncio.subprocess.Process, server_exit: ServerExit) -> None:
    """Drain standard error and keep its end."""
    assert process.stderr is not None
    while chunk := await process.stderr.read(CHUNK_BYTES):
        server_exit.error_tail = (server_exit.error_tail + chunk)[-ERROR_TAIL_BYTES_MAX:]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input, then end the whole group: first with SIGTERM, then with SIGKILL."""
    if process.stdin is not None:
        process.stdin.close()
    for wait_s, signal_ in ((LEAVE_S, signal.SIGTERM), (KILL_S, signal.SIGKILL)):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), wait_s)
        # The group outlives its leader: the children that the leader left are ended too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal_)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), KILL_S)
    # asyncio keeps a pipe open whose reading is paused, or that a survivor holds; it has no public close.
    transport: asyncio.SubprocessTransport | None = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


def _die_with_parent() -> None:
    """In the child: ask the kernel for SIGKILL when the parent dies."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
