"""One stream as a file of the server: its messages, their positions and times, and its consumers.

The server makes the copy from its blocks on disk and takes it back whole or not at all.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead_eventlog.backup.copy_order import CHUNK_BYTES
from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import NatsLink, NoAnswer, ServerRefusal, stream_error
from fairlead_eventlog.jetstream.thin.frames import DESCRIPTION, STATUS, InboundMessage

# The server gives up after five seconds without an acknowledgement, and so do we without a chunk.
CHUNK_WAIT_S: Final = 30.0
# The server unpacks and indexes all messages before it answers the last chunk.
FINISH_WAIT_S: Final = 600.0
COMPLETE: Final = "204"
LISTENER_TRIES: Final = 20
LISTENER_PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class StreamCopy:
    """A copy that begins: what the server says of the stream, and its bytes."""

    config: dict[str, Any]
    state: dict[str, Any]
    chunks: AsyncIterator[bytes]


@asynccontextmanager
async def open_copy(link: NatsLink, stream: str, *, consumers: bool) -> AsyncIterator[StreamCopy]:
    """Begin the copy of a stream. Raises StreamMissing, LogUnavailable; its chunks raise LogUnavailable."""
    arrived: asyncio.Queue[InboundMessage] = asyncio.Queue()
    inbox = link.client.new_inbox()
    subscription = await link.listen(inbox, arrived.put_nowait)
    request = {"deliver_subject": inbox, "no_consumers": not consumers, "chunk_size": CHUNK_BYTES}
    try:
        answer = await link.api(f"STREAM.SNAPSHOT.{stream}", request)
        yield StreamCopy(answer["config"], answer["state"], _chunks(link, stream, arrived))
    except ServerRefusal as refusal:
        raise stream_error(refusal, stream) from refusal
    finally:
        with suppress(Exception):
            await subscription.unsubscribe()


async def _chunks(
    link: NatsLink, stream: str, arrived: asyncio.Queue[InboundMessage]
) -> AsyncIterator[bytes]:
    while True:
        try:
            async with asyncio.timeout(CHUNK_WAIT_S):
                message = await arrived.get()
        except TimeoutError as error:
            raise LogUnavailable(f"the copy of {stream} stands still") from error
        if not message.data:
            status = message.headers.get(STATUS, COMPLETE)
            if status != COMPLETE:
                reason = message.headers.get(DESCRIPTION, "")
                raise LogUnavailable(f"the server ended the copy of {stream}: {status} {reason}")
            return
        yield message.data
        if message.reply:
            await link.send(message.reply, b"")


async def restore_copy(
    link: NatsLink, config: dict[str, Any], state: dict[str, Any], chunks: Iterable[bytes]
) -> dict[str, Any]:
    """Make a stream from its copy; the answer is its state. Raises LogUnavailable, StoreFull."""
    stream = str(config["name"])
    try:
        begun = await link.api(f"STREAM.RESTORE.{stream}", {"config": config, "state": state})
        subject = str(begun["deliver_subject"])
        for chunk in chunks:
            await _send_chunk(link, subject, chunk, timeout_s=CHUNK_WAIT_S)
        answer = await _send_chunk(link, subject, b"", timeout_s=FINISH_WAIT_S)
    except ServerRefusal as refusal:
        raise stream_error(refusal, stream) from refusal
    except (NoAnswer, NoResponders) as error:
        raise LogUnavailable(f"the server stopped the restore of {stream}") from error
    restored: dict[str, Any] = answer["state"]
    return restored


async def _send_chunk(
    link: NatsLink, subject: str, chunk: bytes, *, timeout_s: float
) -> dict[str, Any]:
    """The answer to a chunk. Another node than ours takes it, and ours may learn that a moment later."""
    for _ in range(LISTENER_TRIES - 1):
        try:
            return _check((await link.request(subject, chunk, timeout_s=timeout_s)).data)
        except NoResponders:
            # Nobody got the chunk, so it may be sent again.
            await asyncio.sleep(LISTENER_PAUSE_S)
    return _check((await link.request(subject, chunk, timeout_s=timeout_s)).data)


def _check(data: bytes) -> dict[str, Any]:
    """The answer to a chunk: empty, or the server's last word. Raises ServerRefusal."""
    answer: dict[str, Any] = orjson.loads(data) if data else {}
    error = answer.get("error")
    if error is not None:
        raise ServerRefusal(int(error.get("err_code", 0)), str(error.get("description", "")))
    return answer
