"""A session that the feed cannot read is held, and published in order by a release that can."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.memory.feed import MemoryFeed
from fairlead_projector.errors import FeedFull
from fairlead_projector.feed import held_sessions
from fairlead_projector.feed.publisher import publish_shard
from fairlead_projector.settings import FeedTimings
from fairlead_schema.events import (
    AgentSwitched,
    PromptAdmitted,
    PromptPromoted,
    SessionArchived,
    SessionCreated,
    SessionPurged,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address, shard
from fairlead_testing.newer_release import newer_commit, newer_release

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder

AT = Address("default", "ses_1")
SHARD = shard(AT.session_id)
NEIGHBOURS = [
    Address("default", f"ses_n{number}")
    for number in range(100)
    if shard(f"ses_n{number}") == SHARD
]
OTHER = NEIGHBOURS[0]
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
SWITCHED = AgentSwitched(message_id="msg_1", agent="plan")
TIMINGS = FeedTimings(safe_after_s=-1.0, advance_s=0.01, poll_s=0.01, take_over_s=0.1)


@asynccontextmanager
async def publish_feed(log_builder: "LogBuilder") -> AsyncIterator[asyncio.Task[None]]:
    """Publish one shard during the block. Its checkpoint advances at once."""
    task = asyncio.create_task(
        publish_shard(SHARD, log_builder.eventlog, on_healthy=lambda: None, timings=TIMINGS)
    )
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, FeedFull):
            await task


def feed_types(log_builder: "LogBuilder", at: Address) -> list[str]:
    """The types of the published events of one session, in order."""
    assert isinstance(log_builder.eventlog.feed, MemoryFeed)
    prefix = f"fairlead.event.{at.tenant}.{at.session_id}."
    subjects = [item.subject for item in log_builder.eventlog.feed.items.values()]
    return [item.removeprefix(prefix) for item in subjects if item.startswith(prefix)]


async def checkpoint(log_builder: "LogBuilder") -> int:
    return (await log_builder.eventlog.feed.checkpoint(SHARD))[0]


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def wait_for_checkpoint(log_builder: "LogBuilder", position: int) -> None:
    async with asyncio.timeout(10):
        while await checkpoint(log_builder) < position:
            await asyncio.sleep(0.005)


async def write_mixed_shard(log_builder: "LogBuilder") -> None:
    """One session with a commit of a newer release in its middle, and another session."""
    await log_builder.append(AT, CREATED)
    await log_builder.log.append_raw(AT, newer_commit(2))
    log_builder.payload(AT, SWITCHED)  # The newer event has its seq.
    await log_builder.append(AT, SWITCHED)
    await log_builder.append(OTHER, CREATED, SessionArchived())


async def test_a_session_that_cannot_be_read_is_held_and_others_go_on(
    log_builder: "LogBuilder",
) -> None:
    """A13, H-19: nothing of the session is left out or published before what is held."""
    async with publish_feed(log_builder):
        await write_mixed_shard(log_builder)
        await wait_for_checkpoint(log_builder, 4)

    assert feed_types(log_builder, AT) == ["session.created"]
    assert feed_types(log_builder, OTHER) == ["session.created", "session.archived"]
    state, _revision = await log_builder.eventlog.feed.state(SHARD)
    assert state.held == {AT: 2}


async def test_a_newer_release_publishes_what_was_held_in_order(log_builder: "LogBuilder") -> None:
    """A13: the checkpoint is far behind the held commit, and the shard has no new commits."""
    async with publish_feed(log_builder):
        await write_mixed_shard(log_builder)
        await wait_for_checkpoint(log_builder, 4)
    async with publish_feed(log_builder):
        # The same release tries again, and holds the session again.
        _position, revision = await log_builder.eventlog.feed.checkpoint(SHARD)
        async with asyncio.timeout(10):
            while (await log_builder.eventlog.feed.checkpoint(SHARD))[1] < revision + 3:
                await asyncio.sleep(0.005)
    assert feed_types(log_builder, AT) == ["session.created"]

    with newer_release():
        log_builder.log.parse_again(AT)
        async with publish_feed(log_builder):
            await wait_until(lambda: len(feed_types(log_builder, AT)) == 3)
            await log_builder.append(AT, SessionArchived())
            await wait_until(lambda: len(feed_types(log_builder, AT)) == 4)

    assert feed_types(log_builder, AT) == [
        "session.created",
        "weather.noted",
        "agent.switched",
        "session.archived",
    ]
    state, _revision = await log_builder.eventlog.feed.state(SHARD)
    assert state.held == {}


async def test_the_list_is_stored_before_the_checkpoint_passes_the_commit(
    log_builder: "LogBuilder", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A13: a publisher that dies between the two leaves the commit to the next one."""
    feed = log_builder.eventlog.feed
    order: list[str] = []
    advance, save_state = feed.advance, feed.save_state

    async def note_advance(shard_: int, position: int, *, revision: int) -> int:
        order.append(f"checkpoint {position}")
        return await advance(shard_, position, revision=revision)

    async def note_state(shard_: int, state: object, *, revision: int) -> int:
        order.append(f"held {len(state.held)}")  # type: ignore[attr-defined]
        return await save_state(shard_, state, revision=revision)  # type: ignore[arg-type]

    monkeypatch.setattr(feed, "advance", note_advance)
    monkeypatch.setattr(feed, "save_state", note_state)
    async with publish_feed(log_builder):
        await write_mixed_shard(log_builder)
        await wait_for_checkpoint(log_builder, 4)

    first_beyond = next(
        i for i, word in enumerate(order) if word in {"checkpoint 2", "checkpoint 4"}
    )
    assert "held 1" in order[:first_beyond]


async def test_a_held_session_that_is_purged_leaves_its_last_word(
    log_builder: "LogBuilder",
) -> None:
    async with publish_feed(log_builder):
        await write_mixed_shard(log_builder)
        await wait_until(lambda: len(feed_types(log_builder, OTHER)) == 2)
        await log_builder.append(AT, SessionPurged())
        await wait_until(lambda: feed_types(log_builder, AT) == ["session.purged"])
        await wait_for_checkpoint(log_builder, 5)

    state, _revision = await log_builder.eventlog.feed.state(SHARD)
    assert state.held == {}


async def test_with_too_many_held_sessions_the_shard_waits(
    log_builder: "LogBuilder", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A13: the list is bounded. The feed stops rather than leaving an event out."""
    monkeypatch.setattr(held_sessions, "HELD_MAX", 1)
    async with publish_feed(log_builder) as task:
        await log_builder.log.append_raw(AT, b"?")
        await wait_for_checkpoint(log_builder, 1)
        await log_builder.log.append_raw(OTHER, b"?")

        with pytest.raises(FeedFull, match="upgrade the projector"):
            await asyncio.wait_for(task, 10)

    assert await checkpoint(log_builder) == 1


async def test_a_promotion_in_a_held_session_keeps_its_delivery(log_builder: "LogBuilder") -> None:
    prompt = Prompt(text="hello")
    admitted = PromptAdmitted(message_id="msg_1", prompt=prompt, delivery="queue")
    promoted = PromptPromoted(message_id="msg_1", prompt=prompt, created=2)
    async with publish_feed(log_builder):
        await log_builder.append(AT, CREATED, admitted)
        await log_builder.log.append_raw(AT, newer_commit(3))
        log_builder.payload(AT, SWITCHED)
        await log_builder.append(AT, promoted)
        await wait_for_checkpoint(log_builder, 3)

    with newer_release():
        log_builder.log.parse_again(AT)
        async with publish_feed(log_builder):
            await wait_until(lambda: "prompt.promoted" in feed_types(log_builder, AT))

    assert isinstance(log_builder.eventlog.feed, MemoryFeed)
    last = list(log_builder.eventlog.feed.items.values())[-1]
    assert b'"delivery":"queue"' in last.payload
