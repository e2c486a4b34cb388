"""The hub of a session: one subscription and one encoding for all its clients (docs/adr/0028)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.deltas import MemoryDeltas
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import START, StoredCommit
from fairlead_gateway.http.sse import FrameQueue, SlowClient, auto_close
from fairlead_gateway.live.hub_registry import HubRegistry
from fairlead_gateway.live.member import Member
from fairlead_gateway.live.session_hub import HubSources
from fairlead_schema.delta import OpenText, TextDelta
from fairlead_schema.events import (
    ExecutionClaimed,
    SessionArchived,
    SyntheticAdded,
    TextEnded,
)
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import Append

AT = Address(DEFAULT_TENANT, "ses_1")
NOTE = SyntheticAdded(message_id="msg_1", text="said")
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")


class FollowedLog(MemoryLog):
    """Counts its open tails, and fails them at the next commit on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.tails = 0
        self.is_failing = False

    @override
    async def tail(self, at: Address, *, after: int) -> AsyncIterator[StoredCommit]:
        self.tails += 1
        try:
            async with auto_close(super().tail(at, after=after)) as commits:
                async for stored in commits:
                    if self.is_failing:
                        raise LogUnavailable("no servers")
                    yield stored
        finally:
            self.tails -= 1


@pytest.fixture
def log() -> FollowedLog:
    return FollowedLog()


@pytest.fixture
def eventlog(log: FollowedLog) -> EventLog:
    return replace(memory_eventlog(), log=log, shards=log)


@pytest.fixture
def hubs() -> HubRegistry:
    return HubRegistry()


@pytest.fixture
def sources(eventlog: EventLog, read: MemoryReadModel) -> HubSources:
    return HubSources(eventlog.log, eventlog.deltas, read, eventlog.snapshots, eventlog.open_texts)


def _queue(bytes_max: int = 100_000) -> FrameQueue:
    return FrameQueue(frames_max=100, bytes_max=bytes_max)


async def _take(frames: FrameQueue) -> bytes:
    async with asyncio.timeout(5):
        return await frames.take()


def _delta(text: str, index: int | None = None) -> TextDelta:
    return TextDelta(assistant_message_id="msg_a", text_id="t", delta=text, index=index)


def _texts(*chunks: bytes) -> list[str]:
    """The texts of the fragments in some chunks."""
    frames = [frame for chunk in chunks for frame in chunk.split(b"\n\n") if frame]
    return [json.loads(frame.removeprefix(b"data: "))["data"]["delta"] for frame in frames]


async def _settle(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


async def test_clients_share_one_subscription_and_the_very_same_bytes(
    append: Append, eventlog: EventLog, log: FollowedLog, hubs: HubRegistry, sources: HubSources
) -> None:
    """H-33: the hub goes away with its last client."""
    head = (await append("ses_1")).head
    assert isinstance(eventlog.deltas, MemoryDeltas)
    listeners = eventlog.deltas._listeners[AT]  # noqa: SLF001
    queues = [_queue() for _ in range(5)]

    async with (
        hubs.enter(AT, sources, head=head) as hub,
        hubs.enter(AT, sources, head=head) as again,
    ):
        assert again is hub
        await hub.follow_fragments()
        await hub.follow_fragments()
        for frames in queues:
            hub.join(frames, seq=head.seq, with_fragments=True)
        await _settle(lambda: log.tails == 1 and len(listeners) == 1)
        await append("ses_1", NOTE)
        commits = [await _take(frames) for frames in queues]
        await eventlog.deltas.send(AT, _delta("Hel"))
        fragments = [await _take(frames) for frames in queues]

    assert commits[0].startswith(b"id: 2\n")
    assert b'"delta":"Hel"' in fragments[0]
    assert len({id(frame) for frame in commits}) == len({id(frame) for frame in fragments}) == 1
    assert (len(hubs), log.tails, len(listeners)) == (0, 0, 0)


async def test_a_client_that_comes_in_the_middle_gets_the_text_so_far(
    append: Append, eventlog: EventLog, hubs: HubRegistry, sources: HubSources
) -> None:
    """The runner is asked once, a lost delta is asked for, and nobody gets a delta twice."""
    head = (await append("ses_1", CLAIMED)).head
    sent = ["Hel", "lo ", "you", " all", "!"]
    done = 2

    def so_far(at: Address) -> tuple[OpenText, ...]:
        asked.append(at)
        return (OpenText(so_far=_delta("".join(sent[:done]), 0), deltas=done),)

    asked: list[Address] = []
    await eventlog.open_texts.start_answering("run_1", so_far)
    early, late = _queue(), _queue()

    async with hubs.enter(AT, sources, head=head) as hub:
        await hub.follow_fragments()
        hub.join(early, seq=head.seq, with_fragments=True)
        first = await _take(early)
        await eventlog.deltas.send(AT, _delta("lo ", 1))  # The text so far had it.
        await eventlog.deltas.send(AT, _delta("you", 2))
        second = await _take(early)
        hub.join(late, seq=head.seq, with_fragments=True)
        joined = await _take(late)
        done = 5
        await eventlog.deltas.send(AT, _delta("!", 4))  # The one before it was lost.
        third, also_third = await _take(early), await _take(late)

    assert _texts(first, second, third) == ["Hello ", "you", " all!"]
    assert _texts(joined, also_third) == ["Hello you", " all!"]
    assert all(b"id: " not in frame for frame in (first, second, third, joined))
    assert asked == [AT, AT]


async def test_a_fragment_of_a_text_that_has_ended_reaches_nobody(
    append: Append, eventlog: EventLog, hubs: HubRegistry, sources: HubSources
) -> None:
    head = (await append("ses_1")).head
    frames = _queue()

    async with hubs.enter(AT, sources, head=head) as hub:
        await hub.follow_fragments()
        hub.join(frames, seq=head.seq, with_fragments=True)
        await eventlog.deltas.send(AT, _delta("Hello", 0))
        fragment = await _take(frames)
        await append("ses_1", TextEnded(assistant_message_id="msg_a", text_id="t", text="Hello"))
        end = await _take(frames)
        await eventlog.deltas.send(AT, _delta("too late", 1))
        late = _queue()
        hub.join(late, seq=head.seq + 1, with_fragments=True)
        await append("ses_1", NOTE)
        after = await _take(frames), await _take(late)

    assert (_texts(fragment), b"text.ended" in end) == (["Hello"], True)
    assert after[0] == after[1]
    assert b"too late" not in after[0]


async def test_without_an_answer_the_fragments_go_on(
    append: Append, eventlog: EventLog, hubs: HubRegistry, sources: HubSources
) -> None:
    """The owner is gone, or runs an earlier release: a client gets what comes, and sees the gap."""
    head = (await append("ses_1", CLAIMED)).head
    frames = _queue()

    async with hubs.enter(AT, sources, head=head) as hub:
        await hub.follow_fragments()
        hub.join(frames, seq=head.seq, with_fragments=True)
        await eventlog.deltas.send(AT, _delta("you", 2))
        one = await _take(frames)
        await eventlog.deltas.send(AT, _delta("!", 3))
        other = await _take(frames)
        late = _queue()
        hub.join(late, seq=head.seq, with_fragments=True)
        await eventlog.deltas.send(AT, _delta("?", 4))
        rest = await _take(late)

    assert _texts(one, other) == ["you", "!"]
    assert _texts(rest) == ["?"]


async def test_a_client_that_reads_nothing_is_cut_off_and_delays_nobody(
    append: Append, hubs: HubRegistry, sources: HubSources
) -> None:
    """B13, H-37: bounded by bytes; the others get everything."""
    head = (await append("ses_1")).head
    slow, fast = _queue(bytes_max=500), _queue()

    async with hubs.enter(AT, sources, head=head) as hub:
        stuck = hub.join(slow, seq=1, with_fragments=False)
        reading = hub.join(fast, seq=1, with_fragments=False)
        received = b""
        for number in range(20):
            await append("ses_1", SyntheticAdded(message_id=f"msg_{number}", text="x" * 100))
            received += await _take(fast)

    assert received.count(b"id: ") == 20
    assert isinstance(stuck.ended.exception(), SlowClient)
    assert not reading.ended.done()


async def test_a_client_that_was_cut_off_gets_nothing_behind_its_gap(
    append: Append, hubs: HubRegistry, sources: HubSources
) -> None:
    """H-37: it may make room before its stream ends, and would resume behind what it missed."""
    head = (await append("ses_1")).head
    frames = _queue(bytes_max=500)

    async with hubs.enter(AT, sources, head=head) as hub:
        member = hub.join(frames, seq=1, with_fragments=False)
        for number in range(5):
            await append("ses_1", SyntheticAdded(message_id=f"msg_{number}", text="x" * 300))
        await _settle(member.ended.done)
        before = await _take(frames)
        await append("ses_1", NOTE)
        await _settle(lambda: hub.seq == 7)
        frames.close()

        assert before.startswith(b"id: 2\n")
        assert await _take(frames) == b""
        hub.leave(member)


async def test_a_client_ahead_of_the_hub_gets_nothing_twice(
    append: Append, hubs: HubRegistry, sources: HubSources
) -> None:
    """H-30: its replay may have read further than the hub has come."""
    first = (await append("ses_1")).head
    frames = _queue()

    async with hubs.enter(AT, sources, head=first) as hub:
        # The hub has not run yet: this commit is still before it.
        second = (await append("ses_1", NOTE)).head
        hub.join(frames, seq=second.seq, with_fragments=True)
        await append("ses_1", SessionArchived())

        assert (await _take(frames)).startswith(b"id: 3\n")


async def test_public_events_alone_go_to_clients_without_fragments(
    append: Append, eventlog: EventLog, hubs: HubRegistry, sources: HubSources
) -> None:
    """I-37, H-36."""
    head = (await append("ses_1")).head
    public, everything = _queue(), _queue()

    async with hubs.enter(AT, sources, head=head) as hub:
        await hub.follow_fragments()
        hub.join(public, seq=1, with_fragments=False)
        hub.join(everything, seq=1, with_fragments=True)
        await asyncio.sleep(0.01)
        await eventlog.deltas.send(AT, _delta("Hel"))
        received = await _take(everything)
        await append("ses_1", CLAIMED, SessionArchived())
        await append("ses_1", NOTE)

        assert (await _take(public)).startswith(b"id: 4\n")
        while b"id: 4\n" not in received:
            received += await _take(everything)
    assert received.index(b"Hel") < received.index(b"id: 3\n") < received.index(b"id: 4\n")
    assert b"id: 2\n" not in received


async def test_the_fragments_of_a_crowd_are_joined_in_order(
    append: Append, eventlog: EventLog, hubs: HubRegistry, sources: HubSources
) -> None:
    """A write to many clients carries what came since the last one."""
    head = (await append("ses_1")).head
    queues = [_queue() for _ in range(200)]

    async with hubs.enter(AT, sources, head=head) as hub:
        await hub.follow_fragments()
        for frames in queues:
            hub.join(frames, seq=1, with_fragments=True)
        await asyncio.sleep(0.01)
        for number in range(20):
            await eventlog.deltas.send(AT, _delta(f"<{number}>"))
            await asyncio.sleep(0.001)
        await append("ses_1", NOTE)
        chunks: list[bytes] = []
        while not chunks or b"id: 2\n" not in chunks[-1]:
            chunks.append(await queues[0].take())

    whole = b"".join(chunks)
    places = [whole.index(b"<%d>" % number) for number in range(20)]
    assert places == sorted(places)
    assert whole.count(b"text.delta") == 20


async def test_the_error_of_a_source_ends_all_clients_and_the_next_one_gets_a_new_hub(
    append: Append, log: FollowedLog, hubs: HubRegistry, sources: HubSources
) -> None:
    head = (await append("ses_1")).head

    async with hubs.enter(AT, sources, head=head) as hub:
        members: list[Member] = [hub.join(_queue(), seq=1, with_fragments=False) for _ in range(3)]
        log.is_failing = True
        head = (await append("ses_1", NOTE)).head
        await _settle(lambda: hub.error is not None)
        late = hub.join(_queue(), seq=2, with_fragments=False)
        log.is_failing = False
        async with hubs.enter(AT, sources, head=head) as fresh:
            frames = _queue()
            fresh.join(frames, seq=2, with_fragments=False)
            await append("ses_1", NOTE)
            assert (await _take(frames)).startswith(b"id: 3\n")

    assert fresh is not hub
    for member in (*members, late):
        assert isinstance(member.ended.exception(), LogUnavailable)
    assert (len(hubs), log.tails) == (0, 0)


async def test_a_new_connection_to_nats_gets_a_new_hub(
    append: Append, hubs: HubRegistry, sources: HubSources
) -> None:
    head = (await append("ses_1")).head
    other = replace(sources, log=MemoryLog())

    async with (
        hubs.enter(AT, sources, head=head) as old,
        hubs.enter(AT, other, head=START) as new,
    ):
        assert new is not old
    assert len(hubs) == 0
