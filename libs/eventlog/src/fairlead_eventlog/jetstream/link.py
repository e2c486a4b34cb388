"""The connection to JetStream: acknowledged publishes, requests and reads.

This module turns every error of nats-py into an error of ours. The adapters above use no nats-py.
Everything goes through the thin path (docs/adr/0039).
"""

import asyncio
from base64 import b64decode
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any, Final, NamedTuple

import nats.errors
import orjson
from nats.aio.subscription import Subscription

from fairlead_eventlog.errors import (
    LogUnavailable,
    MessageTooLarge,
    NoResponders,
    ServerUnfit,
    StoreFull,
    StreamMissing,
    SubjectRefused,
)
from fairlead_eventlog.jetstream.client import NatsClient
from fairlead_eventlog.jetstream.server_fitness import find_unfit
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.jetstream.thin.request_mux import Receive, RequestMux

# The server says "wrong last sequence" with either code; 10164 comes from replicated streams.
WRONG_LAST_SEQUENCE: Final = frozenset({10071, 10164})
# The server did not store a message. The description says why.
NOT_STORED: Final = 10077
_SECOND_MESSAGE: Final = "maximum messages per subject exceeded"
NO_CONSUMER: Final = 10014
NO_MESSAGE: Final = 10037
NO_STREAM: Final = 10059

# How the server says that a stream, its account or its disk has no room.
_NO_ROOM: Final = ("maximum bytes exceeded", "insufficient", "no space left")

# Room beside a payload. The server counts headers too, and closes the connection after a message
# that is too large. The feed also adds a few fields to each event.
HEADROOM_BYTES: Final = 4096

# A direct get ends with one of these: nothing there, or the end of what is there. Every other
# status (no responders, a timeout, too many subjects) says nothing about what is stored.
_READ_ENDED: Final = frozenset({"404", "204"})
PATTERN_BATCH: Final = 256

EXPECTED_LAST: Final = "Nats-Expected-Last-Subject-Sequence"
MESSAGE_ID: Final = "Nats-Msg-Id"
SUBJECT: Final = "Nats-Subject"
SEQUENCE: Final = "Nats-Sequence"
TIME_STAMP: Final = "Nats-Time-Stamp"

_AWAY: Final = (
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionDrainingError,
    nats.errors.ConnectionReconnectingError,
    nats.errors.FlushTimeoutError,
    nats.errors.OutboundBufferLimitError,
    nats.errors.StaleConnectionError,
    nats.errors.NoServersError,
)


class ServerRefusal(Exception):
    """JetStream answered with an error code."""

    def __init__(self, code: int, description: str) -> None:
        super().__init__(f"{description} ({code})")
        self.code = code
        self.description = description

    @property
    def is_second_message(self) -> bool:
        """Whether a subject that holds one message refused a second. A full stream has the same code."""
        return self.code == NOT_STORED and _SECOND_MESSAGE in self.description


class NoAnswer(Exception):
    """No answer in time: the request may or may not have been carried out."""


class StoredMessage(NamedTuple):
    """One stored message."""

    subject: str
    sequence: int
    payload: bytes
    time_stamp: str
    """When the server stored it, by the clock of the server."""


class NatsLink:
    """One connection, without any knowledge of sessions."""

    def __init__(self, client: NatsClient, timeout_s: float) -> None:
        self.client = client
        self.timeout_s = timeout_s
        self.mux = RequestMux(client)
        self._on_reconnect: set[Callable[[], None]] = set()
        self._connected_at = -inf

    async def open(self) -> None:
        """Install the one inbox that all answers share."""
        await self.mux.open()

    async def close(self) -> None:
        """Disconnect. What still waits for an answer fails."""
        self.mux.close()
        await self.client.close()

    @property
    def payload_bytes_max(self) -> int:
        """What a message may hold beside its headers."""
        return self.client.max_payload - HEADROOM_BYTES

    def complaint(self) -> str | None:
        """Why the log cannot be used now; None if it can."""
        if not self.client.is_connected:
            return "NATS is not connected"
        unfit = self.find_unfit()
        return None if unfit is None else str(unfit)

    def find_unfit(self) -> ServerUnfit | None:
        """What the connected server lacks; None if it has all that Fairlead needs."""
        url = self.client.connected_url
        return find_unfit("" if url is None else url.netloc, self.client.server_info)

    @property
    def connected_s(self) -> float:
        """How long the connection has held since it last came back; infinite if it never broke."""
        return max(0.0, monotonic() - self._connected_at)

    def notify_disconnected(self) -> None:
        """Remember that answers of others cannot reach us."""
        self._connected_at = inf

    def notify_reconnected(self) -> None:
        """Run the callbacks of everything that may have missed messages."""
        self._connected_at = monotonic()
        for notify in tuple(self._on_reconnect):
            notify()

    def on_reconnect(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Run a callback after each reconnection; the returned function removes it."""
        self._on_reconnect.add(notify)
        return lambda: self._on_reconnect.discard(notify)

    async def listen(self, subject: str, receive: Receive) -> Subscription:
        """Receive the messages of a subject as they are read. The function must not block."""
        return await self.client.subscribe_directly(subject, receive)

    async def request(
        self,
        subject: str,
        body: bytes,
        *,
        headers: dict[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> InboundMessage:
        """One request, one answer. Raises NoResponders, NoAnswer, LogUnavailable, MessageTooLarge."""
        wait_s = self.timeout_s if timeout_s is None else timeout_s
        try:
            return await self.mux.request(subject, body, timeout_s=wait_s, headers=headers)
        except nats.errors.NoRespondersError as error:
            raise NoResponders(subject) from error
        except _AWAY as error:
            raise LogUnavailable(_describe(error)) from error
        except TimeoutError as error:
            raise NoAnswer(subject) from error
        except nats.errors.MaxPayloadError as error:
            raise MessageTooLarge(subject, len(body), self.client.max_payload) from error

    async def send(
        self, subject: str, body: bytes, *, reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """Publish without acknowledgement. Raises LogUnavailable and MessageTooLarge."""
        try:
            if not self.client.try_send(subject, body, reply=reply, headers=headers):
                await self.client.send(subject, body, reply=reply, headers=headers)
        except _AWAY as error:
            raise LogUnavailable(_describe(error)) from error
        except nats.errors.MaxPayloadError as error:
            raise MessageTooLarge(subject, len(body), self.client.max_payload) from error

    async def flush(self, *, timeout_s: float | None = None) -> None:
        """Wait until the server has everything that was sent. Raises LogUnavailable."""
        wait_s = self.timeout_s if timeout_s is None else timeout_s
        try:
            await self.client.flush(timeout=max(1, round(wait_s)))
        except (nats.errors.Error, TimeoutError) as error:
            raise LogUnavailable(_describe(error)) from error

    async def store(
        self,
        subject: str,
        body: bytes,
        *,
        headers: dict[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """Publish into a stream; the answer is the sequence. Raises ServerRefusal and what request raises."""
        answer = await self.request(subject, body, headers=headers, timeout_s=timeout_s)
        return int(_parse_answer(answer.data)["seq"])

    async def api(self, verb: str, body: object = None) -> dict[str, Any]:
        """Call JetStream's own API. Raises ServerRefusal, StreamMissing, LogUnavailable."""
        payload = b"" if body is None else orjson.dumps(body)
        try:
            return _parse_answer((await self.request(f"$JS.API.{verb}", payload)).data)
        except NoResponders as error:
            raise LogUnavailable("JetStream is not enabled or has no leader") from error
        except NoAnswer as error:
            if self.client.violation is not None:
                raise SubjectRefused(self.client.violation) from error
            raise LogUnavailable(f"JetStream did not answer {verb} in time") from error

    async def first_message(self, stream: str, subject: str) -> StoredMessage | None:
        """The first message of a subject that is left in a stream, read from the leader."""
        return await self._get(stream, {"seq": 1, "next_by_subj": subject})

    async def last_message(self, stream: str, subject: str) -> StoredMessage | None:
        """The last message of a subject, read from the leader: never stale."""
        return await self._get(stream, {"last_by_subj": subject})

    async def message_at(self, stream: str, sequence: int) -> StoredMessage | None:
        """The message with a sequence, read from the leader; None if it is not there any more."""
        return await self._get(stream, {"seq": sequence})

    async def next_message(self, stream: str, sequence: int) -> StoredMessage | None:
        """The first message from a sequence on, read from the leader."""
        return await self._get(stream, {"seq": sequence, "next_by_subj": ">"})

    async def _get(self, stream: str, query: dict[str, Any]) -> StoredMessage | None:
        try:
            answer = await self.api(f"STREAM.MSG.GET.{stream}", query)
        except ServerRefusal as error:
            if error.code == NO_MESSAGE:
                return None
            raise stream_error(error, stream) from error
        return _parse_message(answer["message"])

    async def read_subject(
        self, stream: str, subject: str, *, first: int, batch: int
    ) -> tuple[list[StoredMessage], int]:
        """Up to `batch` messages of one exact subject from `first` on, and how many remain.

        Any replica answers, so the newest messages may be missing. Raises LogUnavailable.
        """
        query = {"seq": first, "next_by_subj": subject, "batch": batch}
        return await self._direct_get(stream, query)

    async def last_by_pattern(self, stream: str, subject: str) -> list[StoredMessage]:
        """The message of every subject that fits a pattern, of a stream that keeps one of each.

        The server refuses a pattern of more than 1,024 subjects at once, so this reads in pages.
        """
        found: dict[str, StoredMessage] = {}
        first, remaining = 1, 1
        while remaining:
            page, remaining = await self.read_subject(
                stream, subject, first=first, batch=PATTERN_BATCH
            )
            found |= {message.subject: message for message in page}
            first = page[-1].sequence + 1 if page else first
            remaining = remaining if page else 0
        return list(found.values())

    async def _direct_get(
        self, stream: str, query: dict[str, Any]
    ) -> tuple[list[StoredMessage], int]:
        messages: list[StoredMessage] = []
        done: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

        def receive(msg: InboundMessage) -> None:
            sequence = msg.find_header(SEQUENCE)
            if sequence is not None:
                found = msg.find_header(SUBJECT) or "", int(sequence), msg.data
                messages.append(StoredMessage(*found, msg.find_header(TIME_STAMP) or ""))
                return
            if done.done():
                return
            headers = msg.headers
            if headers.get("Status") in _READ_ENDED:
                done.set_result(int(headers.get("Nats-Num-Pending", "0")))
            else:
                done.set_exception(_read_failure(stream, headers))

        reply, close = self.mux.open_reply_subject(receive, done, self.timeout_s)
        try:
            await self.send(f"$JS.API.DIRECT.GET.{stream}", orjson.dumps(query), reply=reply)
            remaining = await done
        finally:
            close()
        if remaining is None:
            raise LogUnavailable(f"{stream} did not answer a read in time")
        return messages, remaining


def _describe(error: Exception) -> str:
    return str(error) or type(error).__name__


def stream_error(error: ServerRefusal, stream: str) -> Exception:
    """StreamMissing for a stream that is not provisioned, StoreFull, else LogUnavailable."""
    if error.code == NO_STREAM:
        return StreamMissing(stream)
    if any(words in error.description for words in _NO_ROOM):
        return StoreFull(stream, str(error))
    return LogUnavailable(str(error))


def _read_failure(stream: str, headers: dict[str, str]) -> LogUnavailable:
    status, description = headers.get("Status", "no status"), headers.get("Description", "")
    if status == "503":
        return LogUnavailable(
            f"nobody serves {stream} now: it has no leader, or `fairlead provision` has not run"
        )
    return LogUnavailable(f"{stream} cannot be read now: {status} {description}".rstrip())


def _parse_answer(data: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = orjson.loads(data)
    error = answer.get("error")
    if error is not None:
        raise ServerRefusal(int(error.get("err_code", 0)), str(error.get("description", "")))
    return answer


def _parse_message(message: dict[str, Any]) -> StoredMessage:
    payload = b64decode(message.get("data", ""))
    return StoredMessage(message["subject"], int(message["seq"]), payload, str(message["time"]))
