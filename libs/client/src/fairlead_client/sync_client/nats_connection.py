"""The connection to NATS for programs without an event loop: it lives in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from fairlead_client.async_client.nats_connection import AsyncTenantLink
from fairlead_client.mailbox import AsyncMailbox, HeardMessage
from fairlead_client.nats_login import NatsLogin

Value = TypeVar("Value")


class _LoopThread:
    """A thread that runs an event loop until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="fairlead-nats", daemon=True
        )
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return not self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """The outcome of a coroutine. If the caller is interrupted, the coroutine is cancelled."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Mailbox:
    """What came on some subjects over one connection."""

    def __init__(self, mailbox: AsyncMailbox, thread: _LoopThread) -> None:
        self._mailbox = mailbox
        self._thread = thread

    def take(self, timeout_s: float) -> list[HeardMessage]:
        """What has come; if nothing has, wait for it so long. Raises what ended the connection."""
        return self._thread.run(self._mailbox.take(timeout_s))


class TenantLink:
    """Connects as a principal of a tenant. Whoever asks after a loss connects again."""

    def __init__(self, login: NatsLogin) -> None:
        self.login = login
        self._thread = _LoopThread()
        self._link = self._thread.run(_make(login))

    def request(self, subject: str, body: bytes, *, timeout_s: float) -> bytes:
        """The answer to a request. Raises ServerAway, Forbidden, Unauthorized, TokenUnavailable."""
        return self._thread.run(self._link.request(subject, body, timeout_s=timeout_s))

    @contextmanager
    def listen(self, *subjects: str) -> Generator[Mailbox, None, None]:
        """A mailbox for some subjects, over the present connection. Raises as `request` does."""
        listening = self._link.listen(*subjects)
        mailbox = self._thread.run(listening.__aenter__())
        try:
            yield Mailbox(mailbox, self._thread)
        finally:
            self._thread.run(listening.__aexit__(None, None, None))

    def renew_proof(self) -> bool:
        """Whether the credentials are others than those that the server has seen."""
        return self._thread.run(self._link.renew_proof())

    def close(self) -> None:
        """Close the connection, and end the thread. A second call does nothing."""
        if self._thread.is_running:
            self._thread.run(self._link.aclose())
            self._thread.close()


async def _make(login: NatsLogin) -> AsyncTenantLink:
    """The link belongs to the event loop of the thread."""
    return AsyncTenantLink(login)
