"""Whole shards on JetStream, in order, for projections."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import NatsLink, ServerRefusal, stream_error
from fairlead_eventlog.jetstream.pull import Pull
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.ports import BATCH_BYTES, LogEntry
from fairlead_eventlog.streams import COMMIT_BYTES_MAX, log_stream
from fairlead_schema import subjects
from fairlead_schema.subjects import Address

BATCH: Final = 500
# The server never delivers a message that is larger than a pull, and counts its subject and headers.
MESSAGE_BYTES_MAX: Final = COMMIT_BYTES_MAX + 64 * 1024
SESSION_BATCH: Final = 50
PULL_EXPIRES_S: Final = 5.0


class JetStreamShards:
    """One durable consumer per shard and reader, created again at the reader's own checkpoint.

    Creating it again ends the pull of an earlier reader, so a shard changes its reader at once.
    """

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def follow(
        self, shard: int, *, after: int, reader: str = "projector", bytes_max: int = BATCH_BYTES
    ) -> AsyncIterator[Sequence[LogEntry]]:
        stream = log_stream(shard)
        await self.forget_reader(shard, reader)
        await self._create_consumer(stream, reader, after)
        pull = Pull(
            self._link,
            stream,
            reader,
            capacity=lambda: BATCH,
            expires_s=PULL_EXPIRES_S,
            bytes_max=max(bytes_max, MESSAGE_BYTES_MAX),
        )
        delivered = 0
        async for batch in pull.batches():
            for msg in batch:
                delivered += 1
                if _consumer_sequence(msg) != delivered:
                    raise LogUnavailable(f"{stream} lost a message on its way to {reader}")
            yield [_entry(msg) for msg in batch]

    async def forget_reader(self, shard: int, reader: str) -> None:
        with suppress(ServerRefusal):  # The consumer did not exist.
            await self._link.api(f"CONSUMER.DELETE.{log_stream(shard)}.{reader}")

    async def reader_position(self, shard: int, reader: str) -> int | None:
        try:
            answer = await self._link.api(f"CONSUMER.INFO.{log_stream(shard)}.{reader}")
        except ServerRefusal:
            return None
        return int(answer["delivered"]["stream_seq"])

    async def last_position(self, shard: int) -> int:
        stream = log_stream(shard)
        try:
            answer = await self._link.api(f"STREAM.INFO.{stream}")
        except ServerRefusal as refusal:
            raise stream_error(refusal, stream) from refusal
        return int(answer["state"]["last_seq"])

    async def session_entries(self, at: Address, *, after: int) -> AsyncIterator[LogEntry]:
        stream, subject = log_stream(subjects.shard(at.session_id)), subjects.log(at)
        last = await self._link.last_message(stream, subject)
        end = 0 if last is None else last.sequence
        while after < end:
            messages, _ = await self._link.read_subject(
                stream, subject, first=after + 1, batch=SESSION_BATCH
            )
            if not messages:
                # A follower answered that does not have the end yet.
                raise LogUnavailable(f"{stream} lags behind its leader")
            for message in messages:
                yield LogEntry(message.sequence, at, message.payload)
            after = messages[-1].sequence

    async def entry_at(self, shard: int, position: int) -> LogEntry | None:
        stream = log_stream(shard)
        message = await self._link.message_at(stream, position)
        if message is None:
            return None
        return LogEntry(position, subjects.address(message.subject), message.payload)

    async def next_position(self, shard: int, *, after: int) -> int | None:
        message = await self._link.next_message(log_stream(shard), after + 1)
        return None if message is None else message.sequence

    async def _create_consumer(self, stream: str, reader: str, after: int) -> None:
        config = {
            "durable_name": reader,
            "name": reader,
            "ack_policy": "none",
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": after + 1,
            "max_waiting": 8,
            "mem_storage": True,
        }
        body = {"stream_name": stream, "config": config}
        try:
            await self._link.api(f"CONSUMER.CREATE.{stream}.{reader}", body)
        except ServerRefusal as refusal:
            raise stream_error(refusal, stream) from refusal


def _entry(msg: InboundMessage) -> LogEntry:
    return LogEntry(_stream_sequence(msg), subjects.address(msg.subject), msg.data)


# A delivery's reply subject reads $JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>…
def _stream_sequence(msg: InboundMessage) -> int:
    return int(msg.reply.split(".")[5])


def _consumer_sequence(msg: InboundMessage) -> int:
    return int(msg.reply.split(".")[6])
