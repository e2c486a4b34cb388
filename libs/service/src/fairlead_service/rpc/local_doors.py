"""Verbs for the other parts of the same process, which ask without NATS."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from fairlead_service.rpc.thin_path import REQUESTS_MAX

Respond: TypeAlias = Callable[[str, Mapping[str, str] | None, bytes], Awaitable[bytes]]
"""Answers a request: its subject, its headers, its body."""


ProcessMessage: TypeAlias = Callable[[Any], Awaitable[Any]]
"""A subscriber of FastStream: its parser, middlewares and handler."""


class LocalDoors(Protocol):
    """Where a server offers its verbs to its own process; `LocalRequests` of the event log."""

    def serve(self, pattern: str, respond: Respond) -> Callable[[], Awaitable[None]]:
        """Answer requests on the subjects of a pattern, until the returned function is called."""


@dataclass(slots=True)
class _LocalMessage:
    """A request as FastStream's parser reads it. It names no reply, so FastStream publishes none."""

    subject: str
    headers: Mapping[str, str] | None
    data: bytes
    reply: str = ""
    _ackd: bool = True

    @property
    def header(self) -> Mapping[str, str] | None:
        return self.headers


class LocalDoor:
    """Answers the local requests of one verb side by side, up to a limit."""

    def __init__(self, pattern: str, respond: Respond) -> None:
        self.pattern = pattern
        self._respond = respond
        self._slots: Final = asyncio.Semaphore(REQUESTS_MAX)

    async def respond(self, subject: str, headers: Mapping[str, str] | None, body: bytes) -> bytes:
        """Answer one request. Waits while too many requests are under way."""
        async with self._slots:
            return await self._respond(subject, headers, body)


def respond_by_faststream(process: ProcessMessage) -> Respond:
    """Answers by the same parser, middlewares and handler as for a message of NATS."""

    async def respond(subject: str, headers: Mapping[str, str] | None, body: bytes) -> bytes:
        answer: bytes = (await process(_LocalMessage(subject, headers, body))).body
        return answer

    return respond
