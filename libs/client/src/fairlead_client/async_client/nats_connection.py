"""A connection to NATS: requests, and subjects to listen to. It is made anew when it is needed.

The synchronous client runs this one in a thread, so this module has a counterpart by hand. What nats-py
does is never cancelled with its caller: it would lose the cancellation, or break the connection.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from fairlead_client.async_client.held_token import read_token
from fairlead_client.async_client.runtime import AsyncUnfinishedWork
from fairlead_client.credentials import source_name, token_reader
from fairlead_client.errors import ClientClosed, ClientError, ServerAway
from fairlead_client.nats_link.connection import close_connection, open_connection
from fairlead_client.nats_link.mailbox import AsyncMailbox, HeardMessage
from fairlead_client.nats_login import CONNECT_S, NatsLogin
from fairlead_schema.errors import Forbidden, LimitReached, PayloadTooLarge, Refused
from fairlead_schema.identity.nats_address import (
    CLIENT_PAYLOAD_BYTES_MAX,
    CLIENT_SUBSCRIPTIONS_MAX,
)

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

OWN_SUBSCRIPTIONS: Final = 2
"""Answers come on one, and one is to spare."""
_VIOLATION: Final = re.compile(r'permissions violation for \w+ to "([^"]+)"', re.IGNORECASE)
_NO_RESPONDERS: Final = "503"


class AsyncTenantLink:
    """Connects as a principal of a tenant. Whoever asks after a loss connects again."""

    def __init__(self, login: NatsLogin) -> None:
        self.login = login
        self._read_token = token_reader(login.token)
        self._opening: asyncio.Task[Client] | None = None
        self._nats: Client | None = None
        self._is_closed = False
        self._work = AsyncUnfinishedWork()
        self._shown: tuple[bytes, str | None] = (b"", None)
        self._inbox = ""
        self._count = 0
        self._asked: dict[str, tuple[str, asyncio.Future[Msg]]] = {}
        self._mailboxes: dict[str, set[AsyncMailbox]] = defaultdict(set)
        self._listening = 0
        """So many subscriptions belong to streams."""

    async def request(self, subject: str, body: bytes, *, timeout_s: float) -> bytes:
        """The answer to a request. Raises ServerAway, PayloadTooLarge, Forbidden, Unauthorized, TokenUnavailable."""
        if len(body) > CLIENT_PAYLOAD_BYTES_MAX:
            raise PayloadTooLarge(
                f"The command has {len(body)} bytes, and a message over NATS at most"
                f" {CLIENT_PAYLOAD_BYTES_MAX}: send less, or upload files over HTTP first"
            )
        nats = await self._connect_within(timeout_s)
        self._count += 1
        token = str(self._count)
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._asked[token] = subject, answer
        try:
            async with asyncio.timeout(timeout_s):
                await self._work.finish(nats.publish(subject, body, reply=f"{self._inbox}.{token}"))
                message = await answer
        except TimeoutError:
            raise self._away(f"no answer within {timeout_s:g} s", was_sent=True) from None
        except Exception as error:
            if isinstance(error, ClientError | Refused):
                raise
            raise self._away(str(error), was_sent=True) from error
        finally:
            del self._asked[token]
        if message.headers is not None and message.headers.get("Status") == _NO_RESPONDERS:
            verb = subject.split(".", 4)[-1]
            cause = f"nobody serves {verb}: ingest is away, or older than this client"
            raise self._away(cause, was_sent=False)
        return message.data

    @asynccontextmanager
    async def listen(
        self, *subjects: str, timeout_s: float = CONNECT_S
    ) -> AsyncGenerator[AsyncMailbox, None]:
        """A mailbox for some subjects, over the present connection. Raises as `request` does, and LimitReached."""
        nats = await self._connect_within(timeout_s)
        mailbox = AsyncMailbox()

        async def put(message: "Msg") -> None:
            mailbox.put(HeardMessage(message.subject, message.data))

        self._take_room(len(subjects))
        for subject in subjects:
            self._mailboxes[subject].add(mailbox)
        try:
            subscriptions = await self._work.finish(
                self._subscribe(nats, subjects, put), _unsubscribe
            )
            try:
                yield mailbox
            finally:
                await self._work.finish(_unsubscribe(subscriptions))
        finally:
            self._listening -= len(subjects)
            for subject in subjects:
                self._mailboxes[subject].discard(mailbox)
                if not self._mailboxes[subject]:
                    del self._mailboxes[subject]

    async def _subscribe(
        self,
        nats: "Client",
        subjects: tuple[str, ...],
        put: "Callable[[Msg], Awaitable[None]]",
    ) -> "list[Subscription]":
        """Listen to subjects, all of them or none. The server knows them when this returns."""
        subscriptions: list[Subscription] = []
        try:
            for subject in subjects:
                subscription = await nats.subscribe(subject, cb=put)
                subscriptions.append(subscription)
            # A ping of nats-py overtakes subscriptions that it has not written yet.
            for _ in range(2):
                await nats.flush(timeout=CONNECT_S)
        except Exception as error:
            await _unsubscribe(subscriptions)
            raise self._away(str(error) or type(error).__name__, was_sent=False) from error
        return subscriptions

    def _take_room(self, count: int) -> None:
        """Count subscriptions. NATS would end a connection with too many, and every stream on it."""
        if self._listening + count > CLIENT_SUBSCRIPTIONS_MAX - OWN_SUBSCRIPTIONS:
            raise LimitReached(
                f"A connection to NATS has at most {CLIENT_SUBSCRIPTIONS_MAX} subscriptions, and each stream"
                f" takes {count}: follow other sessions with another client"
            )
        self._listening += count

    async def renew_proof(self) -> bool:
        """Whether the credentials are others than those that the server has seen."""
        return await self._read_proof() != self._shown

    async def aclose(self) -> None:
        """Close the connection for good. Whoever waits for it gets ClientClosed."""
        self._is_closed = True
        opening = self._opening
        if opening is not None:
            opening.cancel()
            await asyncio.wait({opening})
        await self._work.aclose()
        nats, self._nats = self._nats, None
        await close_connection(nats)

    async def _connect_within(self, timeout_s: float) -> "Client":
        """The connection, made anew if it was lost. Raises ClientClosed, and as `open_connection` does."""
        self._check_open()
        if self._nats is not None and self._nats.is_connected:
            return self._nats
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._note_opening)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(self._opening)
        except TimeoutError:
            raise self._away(f"no connection within {timeout_s:g} s", was_sent=False) from None
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and not caller.cancelling():
                self._check_open()
            raise

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed

    async def _open(self) -> "Client":
        """Connect for everybody who waits. It goes on without them: the next one needs it too."""
        lost, self._nats = self._nats, None
        await close_connection(lost)
        self._shown = await self._read_proof()
        self._nats, self._inbox = await open_connection(
            self.login,
            self._shown[1],
            on_answer=self._on_answer,
            on_error=self._on_error,
            on_closed=self._on_closed,
        )
        return self._nats

    def _note_opening(self, opening: "asyncio.Task[Client]") -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # Perhaps nobody waits for it any more.

    async def _read_proof(self) -> tuple[bytes, str | None]:
        token: str | None = None
        if self._read_token is not None:
            token = await read_token(self._read_token, source_name(self.login.token))
        return self.login.read_proof(), token

    def _away(self, cause: str, *, was_sent: bool) -> ServerAway:
        return ServerAway(self.login.address, cause, was_sent=was_sent)

    async def _on_answer(self, message: "Msg") -> None:
        _, answer = self._asked.get(message.subject.rpartition(".")[2], ("", None))
        if answer is not None and not answer.done():
            answer.set_result(message)

    async def _on_error(self, error: Exception) -> None:
        """Tell whoever uses a subject that the server refused it."""
        violation = _VIOLATION.search(str(error))
        if violation is None:
            return
        refused = violation[1]
        text = (
            f"NATS does not grant {refused} to {self.login.principal}: the principal lacks a role, or the"
            " grants are older than this client (`fairlead provision --nats-auth` writes them anew)"
        )
        for subject, answer in tuple(self._asked.values()):
            if subject == refused and not answer.done():
                answer.set_exception(Forbidden(text))
        for mailbox in tuple(self._mailboxes.get(refused, ())):
            mailbox.end(Forbidden(text))

    async def _on_closed(self) -> None:
        """End everybody who waits on a connection that is lost."""
        lost: ClientError = self._away("the connection was lost", was_sent=True)
        if self._is_closed:
            lost = ClientClosed()
        for _, answer in tuple(self._asked.values()):
            if not answer.done():
                answer.set_exception(lost)
        for mailboxes in tuple(self._mailboxes.values()):
            for mailbox in tuple(mailboxes):
                mailbox.end(lost)


async def _unsubscribe(subscriptions: "list[Subscription]") -> None:
    for subscription in subscriptions:
        with suppress(Exception):
            await subscription.unsubscribe()
