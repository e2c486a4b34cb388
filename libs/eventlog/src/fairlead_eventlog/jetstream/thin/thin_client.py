"""The one place that uses the inside of nats-py: frames into its pending list, messages from its parser.

nats-py makes a queue, a task, a dictionary of headers and two futures for what is here one call. The
flusher of nats-py still writes, in one go, all frames of one turn of the event loop. If a release of
nats-py looks different inside, everything goes through its public methods, with the same meaning.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from typing_extensions import override

from fairlead_eventlog.jetstream.thin.frames import InboundMessage, encode_headers, encode_publish

log = logging.getLogger(__name__)

Take: TypeAlias = Callable[[InboundMessage], object]
"""Takes a message as soon as it is read. False means: not now, let it wait in a queue."""
TakeLater: TypeAlias = Callable[[InboundMessage], Awaitable[None]]
"""Takes a message that waited."""

# A server that takes nothing for so long is away, although the connection has not noticed it yet.
ROOM_S: Final = 10.0
# What may wait in the queue of one subscription. More is dropped and reported.
WAITING_MAX: Final = 65_536
WAITING_BYTES_MAX: Final = 128 * 1024 * 1024
_PROCESS_PARAMETERS: Final = ("self", "sid", "subject", "reply", "data", "headers")
_FIELDS: Final[Mapping[str, type]] = {
    "_pending": list,
    "_pending_data_size": int,
    "_max_pending_size": int,
    "_max_payload": int,
    "_flush_queue": asyncio.Queue,
    "_flusher_task": asyncio.Task,
    "_status": int,
}


class ThinClient(Client):
    """A client that sends without a future, and hands messages over without a queue."""

    def __init__(self) -> None:
        super().__init__()
        self._takers: dict[int, Take] = {}
        self._flushed: asyncio.Future[None] | None = None
        """What the flusher completes after a write; done already, because nobody waits. None is: no thin path."""
        self._room: asyncio.Future[None] | None = None
        """Done when what is pending is written."""

    def use_thin_path(self) -> None:
        """Begin after the first connect, unless nats-py looks different inside."""
        changed = find_changes(self)
        if changed is not None:
            log.warning(
                "nats-py has changed inside: requests take its ordinary path and cost more",
                extra={"changed": changed},
            )
            return
        self._flushed = asyncio.get_running_loop().create_future()
        self._flushed.set_result(None)

    @property
    def is_thin(self) -> bool:
        return self._flushed is not None

    def try_send(
        self,
        subject: str,
        body: bytes,
        *,
        reply: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        """Give one publish to the flusher, unless the connection or its buffer is not ready.

        Raises BadSubjectError, BadHeaderError and MaxPayloadError.
        """
        if self._flushed is None or self._status != Client.CONNECTED or self._is_full:
            return False
        queue, flusher = self._flush_queue, self._flusher_task
        if queue is None or flusher is None or flusher.done():
            return False
        frame = encode_publish(subject, reply, body, headers, bytes_max=self._max_payload)
        self._pending.append(frame)
        self._pending_data_size += len(frame)
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += len(body)
        if queue.empty():
            queue.put_nowait(self._flushed)
        return True

    async def send(
        self,
        subject: str,
        body: bytes,
        *,
        reply: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Publish as soon as the buffer has room. Raises what `publish` and `try_send` raise."""
        while not self.try_send(subject, body, reply=reply, headers=headers):
            if not (self.is_thin and self._status == Client.CONNECTED and self._is_full):
                copied = None if headers is None else dict(headers)
                await self.publish(subject, body, reply=reply, headers=copied)
                return
            await self._wait_for_room()

    async def subscribe_directly(
        self,
        subject: str,
        take: Take,
        *,
        queue: str = "",
        take_later: TakeLater | None = None,
    ) -> Subscription:
        """Subscribe with a function that gets each message as it is read. It must not block.

        What it does not take waits for `take_later`, in the bounded queue of nats-py.
        """

        async def receive(msg: Msg) -> None:
            message = _from_nats(msg)
            if take(message) is False and take_later is not None:
                await take_later(message)

        subscription = await self.subscribe(
            subject,
            queue,
            cb=receive,
            pending_msgs_limit=WAITING_MAX if take_later else 0,
            pending_bytes_limit=WAITING_BYTES_MAX if take_later else 0,
        )
        if self.is_thin:
            self._takers[subscription._id] = take  # noqa: SLF001 - see the module
        return subscription

    @override
    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: Any
    ) -> None:
        take = self._takers.get(sid)
        if take is None or not self._hand_over(take, subject, reply, data, headers):
            await super()._process_msg(sid, subject, reply, data, headers)

    def _hand_over(
        self, take: Take, subject: bytes, reply: bytes, data: bytes, headers: bytes | None
    ) -> bool:
        # An error here would end the reader of the connection for ever.
        try:
            message = InboundMessage(subject.decode(), reply.decode(), data, headers)
            if take(message) is False:
                return False
        except Exception:
            log.exception(
                "a message from NATS could not be handled: it is dropped",
                extra={"subject": subject.decode(errors="replace")},
            )
        self.stats["in_msgs"] += 1
        self.stats["in_bytes"] += len(data)
        return True

    @override
    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        self._takers.pop(sid, None)
        super()._remove_sub(sid, max_msgs)

    @property
    def _is_full(self) -> bool:
        return self._pending_data_size > self._max_pending_size

    async def _wait_for_room(self) -> None:
        """Wait until the flusher has written what is pending. Raises FlushTimeoutError."""
        try:
            async with asyncio.timeout(ROOM_S):
                await asyncio.shield(await self._ask_for_room())
        except TimeoutError as error:
            raise nats.errors.FlushTimeoutError from error

    async def _ask_for_room(self) -> asyncio.Future[None]:
        """What is done when the flusher has written: one for all who wait."""
        queue, room = self._flush_queue, self._room
        assert queue is not None, "a connected client has a flusher"
        if room is None or room.done():
            self._room = room = asyncio.get_running_loop().create_future()
            try:
                await queue.put(room)
            except asyncio.CancelledError:
                room.set_result(None)  # The others look again, and one of them asks.
                raise
        return room


def find_changes(client: Client) -> str | None:
    """What inside a connected client is not as the thin path needs it; None if all is."""
    for name, kind in _FIELDS.items():
        if not isinstance(getattr(client, name, None), kind):
            return name
    for method, parameters in (
        ("_process_msg", _PROCESS_PARAMETERS),
        ("_remove_sub", ("self", "sid", "max_msgs")),
    ):
        found = getattr(Client, method, None)
        if found is None or tuple(inspect.signature(found).parameters) != parameters:
            return method
    return None


def _from_nats(msg: Msg) -> InboundMessage:
    raw = None if msg.headers is None else encode_headers(msg.headers)
    return InboundMessage(msg.subject, msg.reply, msg.data, raw)
