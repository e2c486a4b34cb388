"""The public feed on JetStream, and how far it has come."""

import asyncio
from collections.abc import Sequence

import orjson

from fairlead_eventlog.errors import AppendConflict, LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    MESSAGE_ID,
    WRONG_LAST_SEQUENCE,
    NatsLink,
    NoAnswer,
    ServerRefusal,
)
from fairlead_eventlog.jetstream.messages import purge_subject, store_message
from fairlead_eventlog.ports import FeedItem, FeedState
from fairlead_eventlog.streams import CHECKPOINTS, EVENTS
from fairlead_schema import subjects
from fairlead_schema.subjects import Address


class JetStreamFeed:
    """The public feed and its checkpoints."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def publish(self, items: Sequence[FeedItem]) -> None:
        # Sessions in parallel, each in order: after a failure no later event of the session goes out.
        sessions: dict[str, list[FeedItem]] = {}
        for item in items:
            sessions.setdefault(item.subject.split(".")[3], []).append(item)
        await asyncio.gather(*(self._publish_in_order(queue) for queue in sessions.values()))

    async def _publish_in_order(self, items: Sequence[FeedItem]) -> None:
        for item in items:
            await store_message(self._link, item.subject, item.payload, _headers(item))

    async def close(self, at: Address, last: FeedItem) -> None:
        # A repeated publish gets the sequence of the first, so that closing again removes nothing more.
        sequence = await store_message(self._link, last.subject, last.payload, _headers(last))
        await purge_subject(self._link, EVENTS.name, subjects.event(at, ">"), before=sequence)

    async def checkpoint(self, shard: int) -> tuple[int, int]:
        message = await self._link.last_message(CHECKPOINTS.name, _checkpoint(shard))
        return (0, 0) if message is None else (int(message.payload), message.sequence)

    async def advance(self, shard: int, position: int, *, revision: int) -> int:
        return await self._store(shard, _checkpoint(shard), str(position).encode(), revision)

    async def state(self, shard: int) -> tuple[FeedState, int]:
        message = await self._link.last_message(CHECKPOINTS.name, _state(shard))
        if message is None:
            return FeedState(), 0
        raw = orjson.loads(message.payload)
        held = {Address(tenant, session): position for tenant, session, position in raw["held"]}
        return FeedState(raw["incarnation"], held), message.sequence

    async def save_state(self, shard: int, state: FeedState, *, revision: int) -> int:
        held = [[*at, position] for at, position in state.held.items()]
        payload = orjson.dumps({"incarnation": state.incarnation, "held": held})
        return await self._store(shard, _state(shard), payload, revision)

    async def _store(self, shard: int, subject: str, payload: bytes, revision: int) -> int:
        headers = {EXPECTED_LAST: str(revision)}
        try:
            return await self._link.store(subject, payload, headers=headers)
        except ServerRefusal as refusal:
            if refusal.code in WRONG_LAST_SEQUENCE:
                at = Address("feed", f"shard-{shard}")
                raise AppendConflict(at, expected=revision, actual=None) from refusal
            raise LogUnavailable(str(refusal)) from refusal
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("the feed's checkpoint was not acknowledged") from error


def _headers(item: FeedItem) -> dict[str, str]:
    return {**item.headers, MESSAGE_ID: item.event_id}


def _checkpoint(shard: int) -> str:
    return f"$KV.fairlead-checkpoint.feed-{shard}"


def _state(shard: int) -> str:
    """A key of its own, because earlier releases know only a number as the checkpoint."""
    return f"$KV.fairlead-checkpoint.feed-state-{shard}"
