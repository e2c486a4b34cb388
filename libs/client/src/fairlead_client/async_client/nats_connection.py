"""A connection to NATS: requests, and subjects to listen to. It is made anew when it is needed.

The synchronous client runs this one in a thread, so this module has a counterpart by hand.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from fairlead_client.async_client.held_token import read_token
from fairlead_client.credentials import source_name, token_reader
from fairlead_client.errors import (
    ClientClosed,
    ClientError,
    ExtraMissing,
    ServerAway,
    TokenUnavailable,
)
from fairlead_client.mailbox import AsyncMailbox, HeardMessage
from fairlead_client.nats_login import CONNECT_S, NatsLogin
from fairlead_client.tls_trust import NATS_AUTHORITY, distrust_of
from fairlead_schema.errors import Forbidden, LimitReached, PayloadTooLarge, Refused, Unauthorized
from fairlead_schema.identity.nats_address import (
    CLIENT_PAYLOAD_BYTES_MAX,
    CLIENT_SUBSCRIPTIONS_MAX,
)

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

CLOSE_S: Final = 2.0
PING_S: Final = 10
OWN_SUBSCRIPTIONS: Final = 2
"""Answers come on one, and one is to spare."""
_REFUSED: Final = ("authorization", "authentication")
_VIOLATION: Final = re.compile(r'permissions violation for \w+ to "([^"]+)"', re.IGNORECASE)
_NO_RESPONDERS: Final = "503"


class AsyncTenantLink:
    """Connects as a principal of a tenant. Whoever asks after a loss connects again."""

    def __init__(self, login: NatsLogin) -> None:
        self.login = login
        self._read_token = token_reader(login.token)
        self._connecting = asyncio.Lock()
        self._nats: Client | None = None
        self._is_closed = False
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
                await nats.publish(subject, body, reply=f"{self._inbox}.{token}")
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

        subscriptions = []
        self._take_room(len(subjects))
        for subject in subjects:
            self._mailboxes[subject].add(mailbox)
        try:
            try:
                for subject in subjects:
                    subscription = await nats.subscribe(subject, cb=put)
                    subscriptions.append(subscription)
                # A ping of nats-py overtakes subscriptions that it has not written yet.
                for _ in range(2):
                    await nats.flush(timeout=CONNECT_S)
            except Exception as error:
                raise self._away(str(error) or type(error).__name__, was_sent=False) from error
            yield mailbox
        finally:
            self._listening -= len(subjects)
            for subject in subjects:
                self._mailboxes[subject].discard(mailbox)
                if not self._mailboxes[subject]:
                    del self._mailboxes[subject]
            for subscription in subscriptions:
                with suppress(Exception):
                    await subscription.unsubscribe()

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
        async with self._connecting:
            nats, self._nats = self._nats, None
            await _close(nats)

    async def _connect_within(self, timeout_s: float) -> "Client":
        """The connection, if it is there in time. Raises as `_connect` does."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._connect()
        except TimeoutError:
            raise self._away(f"no connection within {timeout_s:g} s", was_sent=False) from None

    async def _connect(self) -> "Client":
        """The connection, made anew if it was lost. Raises ClientClosed, and as `_connect_anew` does."""
        if self._is_closed:
            raise ClientClosed
        if self._nats is not None and self._nats.is_connected:
            return self._nats
        async with self._connecting:
            if self._is_closed:
                raise ClientClosed
            if self._nats is None or not self._nats.is_connected:
                nats, self._nats = self._nats, None
                await _close(nats)
                self._nats = await self._connect_anew()
            return self._nats

    async def _connect_anew(self) -> "Client":
        """Try each server once. Raises ServerAway, Unauthorized, TokenUnavailable, ExtraMissing."""
        try:
            from nats.aio.client import Client  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ExtraMissing("nats") from error
        self._shown = await self._read_proof()
        errors: list[Exception] = []

        async def note(error: Exception) -> None:
            errors.append(error)
            await self._on_error(error)

        for server in self.login.servers:
            client = Client()
            try:
                await client.connect(
                    server,
                    name="fairlead-client",
                    allow_reconnect=False,
                    # nats-py would try a server that is away sixty times.
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    connect_timeout=CONNECT_S,
                    ping_interval=PING_S,
                    inbox_prefix=self.login.inbox_prefix,
                    error_cb=note,
                    closed_cb=self._on_closed,
                    tls=self.login.tls,
                    **self._credentials(),
                )
                self._inbox = client.new_inbox()
                await client.subscribe(f"{self._inbox}.*", cb=self._on_answer)
            except Exception as error:  # noqa: BLE001 - nats-py has many errors for a lost server
                # It notes why, and raises that no servers are available.
                errors = errors or [error]
                await _close(client)
            except BaseException:
                await _close(client)
                raise
            else:
                return client
        refused = [error for error in errors if _is_refusal(error)]
        raise self._refusal((refused or errors)[-1])

    def _credentials(self) -> dict[str, Any]:
        login, (_, token) = self.login, self._shown
        proofs = {
            "nkeys_seed": login.nkey_file and str(login.nkey_file),
            "user_credentials": login.creds_file and str(login.creds_file),
            "token": token,
        }
        return {name: proof for name, proof in proofs.items() if proof is not None}

    async def _read_proof(self) -> tuple[bytes, str | None]:
        token: str | None = None
        if self._read_token is not None:
            token = await read_token(self._read_token, source_name(self.login.token))
        return self.login.read_proof(), token

    def _refusal(self, error: Exception) -> ClientError | Refused:
        """Why nobody could connect."""
        reason = str(error) or type(error).__name__
        if type(error).__module__.startswith(("nkeys", "binascii")):
            return TokenUnavailable(str(self.login.nkey_file), "not an nkey seed")
        untrusted = distrust_of(error, self.login.address, NATS_AUTHORITY)
        if untrusted is not None:
            return untrusted
        if _is_refusal(error):
            login = self.login
            text = f"NATS refused the credentials of {login.principal} of the tenant {login.tenant}"
            return Unauthorized(f"{text}: the key is not in its auth.conf, or has expired")
        return self._away(reason, was_sent=False)

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


async def _close(nats: "Client | None") -> None:
    """Close a connection. nats-py waits for a server that reads nothing, for ever."""
    if nats is not None:
        with suppress(Exception):
            await asyncio.wait_for(nats.close(), CLOSE_S)


def _is_refusal(error: Exception) -> bool:
    """Whether a server refused the credentials."""
    return any(word in str(error).lower() for word in _REFUSED)
