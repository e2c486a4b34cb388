"""Rest: in one commit with the end of the turn, not before new input, and checked once more."""

import asyncio
from dataclasses import replace

import pytest
from starlette.responses import Response
from typing_extensions import override

from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.memory.snapshots import MemorySnapshots
from fairlead_eventlog.ports import CommitPage, Head
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema import subjects
from fairlead_schema.events import ExecutionReleased, PromptPromoted, ResumeRequested
from fairlead_schema.record import Draft, MalformedCommit
from fairlead_schema.subjects import Address
from fairlead_session.fold.snapshot import thaw
from services.runner.tests.conftest import (
    AT,
    CREATED,
    WatchedLog,
    World,
    admitted,
    run_consumer,
    text_reply,
    wait_until,
)


def releases(drafts: tuple[Draft, ...]) -> bool:
    return any(isinstance(draft.event, ExecutionReleased) for draft in drafts)


async def test_the_end_of_the_turn_and_the_rest_are_one_commit(world: World) -> None:
    """B-16: no reader sees the session answered and still owned."""
    await world.write(admitted("msg_1"))

    await world.drain()

    page = await world.log.read(AT, after=Head(0, 0))
    last = [recorded.event.type for recorded in page.commits[-1].commit.events]
    assert last[-2:] == ["step.ended", "execution.released"]


async def test_a_prompt_that_arrives_with_the_release_is_still_processed(world: World) -> None:
    """B-09: the release fails, the answer is kept, the new input gets its turn."""
    await world.write(admitted("msg_1", "one"))
    arrived = False

    async def late(drafts: tuple[Draft, ...]) -> None:
        nonlocal arrived
        if releases(drafts) and not arrived:
            arrived = True
            await world.write(admitted("msg_2", "two"))

    world.log.before = late

    await world.drain()

    assert arrived
    session = await world.session()
    assert (session.inbox.pending, session.execution.rested, session.execution.owner) == (
        (),
        "idle",
        None,
    )
    assert len(world.provider.requests) == 2
    types = await world.types()
    assert (types.count("step.ended"), types.count("execution.released")) == (2, 1)
    assert types.count("execution.claimed") == 1


async def test_a_prompt_that_arrives_with_a_failure_is_still_processed(world: World) -> None:
    """B-24: the failed step is written although another event came first."""
    await world.write(admitted("msg_1"))
    world.provider.replies.append(Response("no", status_code=400))
    arrived = False

    async def late(drafts: tuple[Draft, ...]) -> None:
        nonlocal arrived
        if releases(drafts) and not arrived:
            arrived = True
            await world.write(admitted("msg_2"))

    world.log.before = late

    await world.drain()

    types = await world.types()
    assert (types.count("step.failed"), types.count("step.ended")) == (1, 1)
    assert (await world.session()).inbox.pending == ()


@pytest.mark.parametrize("what", ["execution.claimed", "step.started", "text.ended"])
async def test_a_prompt_that_arrives_at_any_commit_is_promoted_once(
    world: World, what: str
) -> None:
    """B-06, B-07: the drain decides again, and writes facts behind the new event."""
    await world.write(admitted("msg_1"))
    arrived = False

    async def late(drafts: tuple[Draft, ...]) -> None:
        nonlocal arrived
        if not arrived and any(draft.event.type == what for draft in drafts):
            arrived = True
            await world.write(admitted("msg_2"))

    world.log.before = late

    await world.drain()

    promoted = [
        event.message_id for event in await world.events() if isinstance(event, PromptPromoted)
    ]
    assert arrived
    assert promoted == ["msg_1", "msg_2"]
    assert (await world.session()).execution.rested == "idle"


async def test_a_prompt_between_the_release_and_the_second_look_is_woken(world: World) -> None:
    """A-26, C-06: its own wake was refused, because another wake of the session was being served."""
    await world.write(admitted("msg_1"))
    await world.wake()
    (job,) = world.wakes
    ack = job.ack

    async def news_then_ack() -> None:
        await world.write(admitted("msg_2"))
        await ack()

    object.__setattr__(job, "ack", news_then_ack)
    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: job not in world.wakes)
        await wait_until(lambda: not world.wakes)

    assert (await world.session()).inbox.pending == ()
    assert len(world.provider.requests) == 2


@pytest.mark.parametrize("resume", [None, False], ids=["asked to run", "woken by a retry"])
async def test_a_leaving_runner_finishes_its_turn_and_hands_over(
    world: World,
    resume: bool | None,  # noqa: FBT001
) -> None:
    """P-02, A-21: a rolling deploy costs no turn; other inputs wait for another runner."""
    for id_ in ("msg_1", "msg_2"):
        queued = admitted(id_, delivery="queue")
        await world.write(queued.model_copy(update={"resume": resume}))
    if resume is False:
        await world.write(ResumeRequested(forced=False))
    consumer = WakeConsumer(world.context())
    shutdowns: list[asyncio.Task[None]] = []

    async def meanwhile() -> Response:
        shutdowns.append(asyncio.create_task(consumer.shutdown()))
        await asyncio.sleep(0)
        return text_reply("done")

    world.provider.replies.append(meanwhile)
    await world.wake()
    async with run_consumer(consumer):
        await wait_until(lambda: bool(shutdowns) and shutdowns[0].done())

    session = await world.session()
    assert (session.execution.rested, len(session.inbox.pending)) == ("handover", 1)
    assert len(world.wakes) == 1
    await world.drain("run_b")
    assert (await world.session()).inbox.pending == ()
    assert (await world.types()).count("execution.recovered") == 0


async def test_a_turn_longer_than_the_grace_time_is_left_to_the_next_runner(world: World) -> None:
    """P-01, P-02: the turn is owed again, and the next runner takes it."""
    world.config["runner"] = {"grace_s": 0.01}
    await world.write(admitted("msg_1"))
    requested = asyncio.Event()

    async def hang() -> Response:
        requested.set()
        await asyncio.Event().wait()
        raise AssertionError("never answered")

    world.provider.replies.append(hang)
    await world.wake()
    async with run_consumer(WakeConsumer(world.context())):
        async with asyncio.timeout(5):
            await requested.wait()

    session = await world.session()
    assert (session.execution.rested, session.execution.owed, session.turn.attempt) == (
        "handover",
        True,
        None,
    )
    assert len(world.wakes) == 1
    await world.drain("run_b")
    assert await world.types(after=len(await world.types()) - 1) == ["execution.released"]
    assert (await world.session()).execution.rested == "idle"


class BrokenLog(WatchedLog):
    """A log where somebody else wrote to one session."""

    @override
    async def read(
        self, at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        if at.session_id == "ses_broken":
            raise MalformedCommit("strange thing")
        return await super().read(at, after=after, limit=limit, reach=reach)


async def test_an_unreadable_session_is_buried_and_nothing_else_stops(world: World) -> None:
    """H-02, I-31: one session stops with a visible reason; the others go on."""
    log = BrokenLog()
    broken = Address("default", "ses_broken")
    other = replace(world, log=log, eventlog=replace(world.eventlog, log=log))
    first = (Draft("evt_1", 1, CREATED), Draft("evt_2", 2, admitted("msg_1")))
    for at in (AT, broken):
        await MemoryLog.append(log, at, "cmt_1", first, after=Head(0, 0))
    await other.wake(broken)

    await other.drain()

    assert isinstance(other.eventlog.dead_letters, MemoryDeadLetters)
    ((source, subject, _payload, reason),) = other.eventlog.dead_letters.letters
    assert (source, subject) == ("session", subjects.log(broken))
    assert "strange thing" in reason
    assert (await other.session()).execution.rested == "idle"


async def test_a_long_session_leaves_a_snapshot_that_equals_its_replay(world: World) -> None:
    """D-08: another runner loads the snapshot without replaying the log."""
    world.config["runner"] = {"snapshot_events": 5}
    await world.write(admitted("msg_1"))

    await world.drain()

    assert isinstance(world.eventlog.snapshots, MemorySnapshots)
    snapshot = world.eventlog.snapshots.snapshots[AT]
    page = await world.log.read(AT, after=Head(0, 0))
    world.eventlog.snapshots.snapshots.clear()
    assert thaw(snapshot.state) == await world.session()
    assert snapshot.head == page.commits[-1].head
