"""What stands beside the log on NATS: snapshots, message ids, the feed, live deltas, requests."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

import nats.errors
import orjson
from nats.aio.msg import Msg
from pydantic import ConfigDict, TypeAdapter, ValidationError

from fairlead_eventlog.errors import AppendConflict, LogUnavailable, Unanswered
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    MESSAGE_ID,
    SUBJECT_FULL,
    WRONG_LAST_SEQUENCE,
    Link,
    NoAnswer,
    ServerRefusal,
    missing,
)
from fairlead_eventlog.jetstream.work_queues import forget, stored
from fairlead_eventlog.ports import FeedItem, Head, Life, OnNudge, Snapshot
from fairlead_eventlog.streams import CHECKPOINTS, EVENTS, MESSAGES, REGISTRATIONS, SNAPSHOTS
from fairlead_schema import subjects
from fairlead_schema.dead_letter import DeadLetter
from fairlead_schema.delta import DELTA, Delta
from fairlead_schema.ids import MessageId, SessionId, TenantId
from fairlead_schema.subjects import Address

DELTA_BUFFER: Final = 1024
SNAPSHOT_BYTES_MAX: Final = 4 * 1024 * 1024
LETTER_BYTES_MAX: Final = 64 * 1024
_HEAD: Final = TypeAdapter(Head, config=ConfigDict(strict=True))


class JetStreamSnapshots:
    """Folded sessions in a key-value bucket."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def load(self, at: Address) -> Snapshot | None:
        found, _ = await self._link.direct(SNAPSHOTS.name, _snapshot(at), first=1, batch=1)
        if not found:
            return None
        head, _, state = found[0].payload.partition(b"\n")
        try:
            return Snapshot(_HEAD.validate_json(head), state)
        except ValidationError:
            return None  # A cache: the log has what stood here.

    async def store(self, at: Address, snapshot: Snapshot) -> None:
        if len(snapshot.state) <= min(SNAPSHOT_BYTES_MAX, self._link.payload_bytes_max):
            payload = orjson.dumps(list(snapshot.head)) + b"\n" + snapshot.state
            await stored(self._link, _snapshot(at), payload)

    async def drop(self, at: Address) -> None:
        await forget(self._link, SNAPSHOTS.name, _snapshot(at))


class JetStreamMessages:
    """Message ids, each bound once."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def bind(
        self, tenant: TenantId, message_id: MessageId, session_id: SessionId
    ) -> SessionId:
        subject = subjects.message(tenant, message_id)
        try:
            await self._link.store(subject, session_id.encode())
        except ServerRefusal as refusal:
            if refusal.code != SUBJECT_FULL:
                raise missing(refusal, MESSAGES.name) from refusal
            got = await self._link.last(MESSAGES.name, subject)
            return session_id if got is None else got.payload.decode()
        except (NoAnswer, Unanswered) as error:
            raise LogUnavailable("the message id was not bound") from error
        return session_id


class JetStreamFeed:
    """The public feed and its checkpoints."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def publish(self, items: Sequence[FeedItem]) -> None:
        # Sessions side by side, but each in order: a failure must not let a later event pass.
        sessions: dict[str, list[FeedItem]] = {}
        for item in items:
            sessions.setdefault(item.subject.split(".")[3], []).append(item)
        await asyncio.gather(*(self._in_order(queue) for queue in sessions.values()))

    async def _in_order(self, items: Sequence[FeedItem]) -> None:
        for item in items:
            await stored(self._link, item.subject, item.payload, {MESSAGE_ID: item.event_id})

    async def close(self, at: Address, last: FeedItem) -> None:
        headers = {MESSAGE_ID: last.event_id}
        # Published twice, it keeps the sequence it had, so that closing again loses nothing.
        sequence = await stored(self._link, last.subject, last.payload, headers)
        await forget(self._link, EVENTS.name, subjects.event(at, ">"), before=sequence)

    async def checkpoint(self, shard: int) -> tuple[int, int]:
        got = await self._link.last(CHECKPOINTS.name, _checkpoint(shard))
        return (0, 0) if got is None else (int(got.payload), got.sequence)

    async def advance(self, shard: int, position: int, *, revision: int) -> int:
        headers = {EXPECTED_LAST: str(revision)}
        try:
            return await self._link.store(
                _checkpoint(shard), str(position).encode(), headers=headers
            )
        except ServerRefusal as refusal:
            if refusal.code in WRONG_LAST_SEQUENCE:
                at = Address("feed", f"shard-{shard}")
                raise AppendConflict(at, expected=revision, actual=None) from refusal
            raise LogUnavailable(str(refusal)) from refusal
        except (NoAnswer, Unanswered) as error:
            raise LogUnavailable("the feed's checkpoint was not acknowledged") from error


class JetStreamRegistrations:
    """Registrations in a key-value bucket, one key each."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        await stored(self._link, _registration(tenant, key), value)

    async def drop(self, tenant: TenantId, key: str) -> None:
        await forget(self._link, REGISTRATIONS.name, _registration(tenant, key))

    async def of(self, tenant: TenantId) -> dict[str, bytes]:
        found = await self._link.family(REGISTRATIONS.name, _registration(tenant, ">"))
        before = len(_registration(tenant, ""))
        return {got.subject[before:]: got.payload for got in found}


class NatsDeltas:
    """Live fragments over core NATS."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def send(self, at: Address, delta: Delta) -> None:
        payload = delta.model_dump_json(by_alias=True, exclude_none=True).encode()
        if len(payload) > self._link.payload_bytes_max:
            return  # No message holds it; its block's end tells it all the same.
        # A fragment is worth nothing later: while the server is away it is dropped.
        with suppress(LogUnavailable):
            await self._link.send(subjects.delta(at), payload)

    async def listen(self, at: Address) -> AsyncIterator[Delta]:
        heard: asyncio.Queue[Msg] = asyncio.Queue(DELTA_BUFFER)

        async def hear(msg: Msg) -> None:
            with suppress(asyncio.QueueFull):
                heard.put_nowait(msg)

        subscription = await self._link.client.subscribe(subjects.delta(at), cb=hear)
        try:
            while True:
                msg = await heard.get()
                with suppress(ValidationError):
                    yield DELTA.validate_json(msg.data)
        finally:
            with suppress(Exception):
                await subscription.unsubscribe()


class NatsRequests:
    """Request and reply over core NATS."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def ask(self, subject: str, body: bytes, *, timeout_s: float) -> bytes:
        try:
            async with asyncio.timeout(timeout_s):
                return (await self._link.request(subject, body, timeout_s=timeout_s)).data
        except (NoAnswer, TimeoutError) as error:
            raise LogUnavailable(f"{subject} did not answer in {timeout_s} s") from error


class NatsLiveness:
    """Pings over core NATS: no responders means gone, and the server knows it at once."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def answer(self, instance: str, on_nudge: OnNudge = lambda _at: None) -> None:
        async def hear(msg: Msg) -> None:
            if msg.data:
                tenant, _, session_id = msg.data.decode().partition(" ")
                on_nudge(Address(tenant, session_id))
            if msg.reply:
                await msg.respond(b"")

        await self._link.client.subscribe(subjects.ping(instance), cb=hear)

    async def nudge(self, instance: str, at: Address) -> None:
        with suppress(LogUnavailable):
            await self._link.send(subjects.ping(instance), f"{at.tenant} {at.session_id}".encode())

    async def ask(self, instance: str, *, timeout_s: float) -> Life:
        try:
            await self._link.client.request(subjects.ping(instance), b"", timeout=timeout_s)
        except nats.errors.NoRespondersError:
            return "gone"
        except (nats.errors.Error, TimeoutError):
            return "silent"
        return "alive"


class JetStreamDeadLetters:
    """Poison, kept with its reason."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def bury(self, source: str, subject: str, payload: bytes, reason: str) -> None:
        # Cut where it is long: written as text it may be several times as long as it was.
        told = payload[:LETTER_BYTES_MAX].decode(errors="backslashreplace")
        letter = DeadLetter(subject=subject, reason=reason[:LETTER_BYTES_MAX], payload=told)
        await stored(self._link, subjects.dead_letter(source), letter.model_dump_json().encode())


def _snapshot(at: Address) -> str:
    return f"$KV.fairlead-snapshot.{at.tenant}.{at.session_id}"


def _registration(tenant: TenantId, key: str) -> str:
    return f"$KV.fairlead-registration.{tenant}.{key}"


def _checkpoint(shard: int) -> str:
    return f"$KV.fairlead-checkpoint.feed-{shard}"
