"""The HTTP protocol with a deadline and a size for the head of each request (FINDINGS B14).

uvicorn waits for ever for a head that never ends. A client that sends one byte a minute would keep
a connection, and a few thousand such clients would keep all of them.
"""

import logging
from asyncio import TimerHandle, Transport
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

log = logging.getLogger(__name__)

# The rest of a body after its answer, such as 413: the client may still be sending it.
REST_BYTES_MAX: Final = 8 * 1024 * 1024
HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one server allows its connections."""

    head_timeout_s: float
    head_bytes_max: int
    connections_max: int


class DeadlineProtocol(HttpToolsProtocol):
    """Drops a connection whose request head is late or too large. `with_limits` sets both."""

    head_timeout_s: ClassVar[float] = 10.0
    head_bytes_max: ClassVar[int] = 32 * 1024

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - uvicorn's own arguments
        super().__init__(*args, **kwargs)
        self._head_timer: TimerHandle | None = None
        self._head_bytes = 0
        self._in_body = False

    @classmethod
    def with_limits(cls, limits: ConnectionLimits) -> "type[DeadlineProtocol]":
        """The protocol with other limits. uvicorn makes the instances, so they are of the class."""
        fields = {"head_timeout_s": limits.head_timeout_s, "head_bytes_max": limits.head_bytes_max}
        return type("LimitedProtocol", (cls,), fields)

    @override
    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    @override
    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        # uvicorn types it as always there, but there is none before the first request.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete:
            # After an answer comes the next head, or first the rest of a body that nobody reads.
            self._await_head()
        super().data_received(data)
        if self._head_timer is not None:
            self._head_bytes += len(data)
            self._check_size()

    @override
    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        self._end_head()
        if size > self.head_bytes_max:
            self._refuse_large_head()
            raise ValueError("the parser stops here, because the connection is closed")
        self._in_body = True
        super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        self._in_body = False
        self._end_head()
        super().on_message_complete()

    @override
    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._drop_late_client)

    def _end_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _drop_late_client(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            log.info(
                "request head not complete in time: connection closed",
                extra={"seconds": self.head_timeout_s},
            )
            self.transport.close()

    def _check_size(self) -> None:
        """Close a connection that sends too much beside the bodies that are read."""
        if self._in_body and self._head_bytes > REST_BYTES_MAX:
            log.info("rest of a refused body too large: connection closed")
            self._end_head()
            self.transport.close()
        elif not self._in_body and self._head_bytes > self.head_bytes_max:
            self._refuse_large_head()

    def _refuse_large_head(self) -> None:
        self._end_head()
        if not self.transport.is_closing():
            log.info("request head too large: refused", extra={"bytes_max": self.head_bytes_max})
            self.transport.write(HEAD_TOO_LARGE)
            self.transport.close()
