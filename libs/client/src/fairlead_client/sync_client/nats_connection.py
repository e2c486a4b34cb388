"""The connection to NATS for programs without an event loop: it lives in a thread of its own."""

from collections.abc import Generator
from contextlib import contextmanager

from fairlead_client.async_client.nats_connection import AsyncTenantLink
from fairlead_client.nats_link.mailbox import AsyncMailbox, HeardMessage
from fairlead_client.nats_login import CONNECT_S, NatsLogin
from fairlead_client.sync_client.loop_thread import LoopThread


class Mailbox:
    """What came on some subjects over one connection."""

    def __init__(self, mailbox: AsyncMailbox, thread: LoopThread) -> None:
        self._mailbox = mailbox
        self._thread = thread

    def take(self, timeout_s: float) -> list[HeardMessage]:
        """What has come; if nothing has, wait for it so long. Raises what ended the connection."""
        return self._thread.run(self._mailbox.take(timeout_s))


class TenantLink:
    """Connects as a principal of a tenant. Whoever asks after a loss connects again."""

    def __init__(self, login: NatsLogin) -> None:
        self.login = login
        self._thread = LoopThread("fairlead-nats")
        self._link = self._thread.run(_make(login))

    def request(self, subject: str, body: bytes, *, timeout_s: float) -> bytes:
        """The answer to a request. Raises ServerAway, Forbidden, Unauthorized, TokenUnavailable."""
        return self._thread.run(self._link.request(subject, body, timeout_s=timeout_s))

    @contextmanager
    def listen(
        self, *subjects: str, timeout_s: float = CONNECT_S
    ) -> Generator[Mailbox, None, None]:
        """A mailbox for some subjects, over the present connection. Raises as `request` does."""
        listening = self._link.listen(*subjects, timeout_s=timeout_s)
        mailbox = self._thread.run(listening.__aenter__())
        try:
            yield Mailbox(mailbox, self._thread)
        finally:
            self._thread.finish(listening.__aexit__(None, None, None))

    def renew_proof(self) -> bool:
        """Whether the credentials are others than those that the server has seen."""
        return self._thread.run(self._link.renew_proof())

    def close(self) -> None:
        """Close the connection, and end the thread. A second call does nothing."""
        self._thread.close(self._link.aclose())


async def _make(login: NatsLogin) -> AsyncTenantLink:
    """The link belongs to the event loop of the thread."""
    return AsyncTenantLink(login)
