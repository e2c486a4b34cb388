"""`session.store` and restores: a stored session takes nothing but its own file or a purge."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import START
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.execution.explain import explain
from fairlead_ingest.verbs.execution.resume import resume
from fairlead_ingest.verbs.history import read_history
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.archive import archive, unarchive
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_ingest.verbs.profile.get import get
from fairlead_ingest.verbs.transfer.check import check
from fairlead_ingest.verbs.transfer.fork import fork
from fairlead_ingest.verbs.transfer.page import read_page
from fairlead_ingest.verbs.transfer.replay import replay
from fairlead_ingest.verbs.transfer.store import store
from fairlead_schema import subjects
from fairlead_schema.commands.history import ReadHistory
from fairlead_schema.commands.session import ForkSession, SessionCommand
from fairlead_schema.commands.transfer import (
    CheckTransfer,
    ReadCommits,
    ReplayEvents,
    StoreSession,
    TransferredSession,
)
from fairlead_schema.errors import (
    Conflict,
    InvalidRequest,
    Refused,
    ServiceUnavailable,
    SessionIsStored,
    SessionNotFound,
)
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_session.transfer.events import stored_events
from fairlead_testing.stored import DIGEST, stored_file
from services.ingest.tests.conftest import (
    AT,
    create_command,
    create_session,
    prompt_command,
    settings,
)

COMMAND = SessionCommand(session_id="ses_1")


@pytest.fixture
async def log(eventlog: EventLog) -> MemoryLog:
    await eventlog.status.finalise(LEVEL_NEWEST)
    assert isinstance(eventlog.log, MemoryLog)
    return eventlog.log


async def stored_json(eventlog: EventLog) -> list[dict[str, Any]]:
    entries = eventlog.shards.session_entries(AT, after=0)
    return [event async for entry in entries for event in stored_events(entry.payload)]


async def feed(context: CommandContext, *, held: bool = False) -> None:
    """The feed has passed every commit of the session. It may hold the session, and publish nothing."""
    shard, port = subjects.shard(AT.session_id), context.eventlog.feed
    state, revision = await port.state(shard)
    held_from = {AT: 1} if held else {}
    await port.save_state(shard, state._replace(held=held_from), revision=revision)
    position = await context.eventlog.log.last_commit_position(AT)
    await port.advance(shard, position, revision=(await port.checkpoint(shard))[1])


async def write(context: CommandContext, count: int = 3) -> list[dict[str, Any]]:
    """A session at rest with so many events."""
    await create_session(context)
    for number in range(count - 1):
        await (archive if number % 2 == 0 else unarchive)(context, "default", COMMAND)
    await feed(context)
    return await stored_json(context.eventlog)


async def leave(context: CommandContext, events: list[dict[str, Any]]) -> None:
    """Store the session, and erase its log as the projector does."""
    await store(context, "default", StoreSession(session_id="ses_1", file=stored_file(len(events))))
    log = context.eventlog.log
    await log.erase(AT, before=await log.last_commit_position(AT))


def batch(events: list[dict[str, Any]], through: int, **fields: Any) -> ReplayEvents:  # noqa: ANN401
    values = {"sessionID": "ses_1", "commits": [{"id": "cmt_1", "events": events}]}
    return ReplayEvents.model_validate({**values, "through": through, "restores": DIGEST, **fields})


async def kind_of(answer: Awaitable[object]) -> str:
    with pytest.raises(Refused) as caught:
        await answer
    return caught.value.body.kind or caught.value.tag


@pytest.mark.usefixtures("log")
async def test_a_stored_session_names_its_file_to_every_command(context: CommandContext) -> None:
    """Nothing is written behind the marker, also by a process that has not seen it."""
    late = CommandContext(context.eventlog, settings())
    events = await write(context)
    await get(late, "default", COMMAND)
    await leave(context, events)
    commands: list[Callable[[CommandContext], Awaitable[object]]] = [
        lambda context: prompt(context, "default", prompt_command()),
        lambda context: prompt(context, "default", prompt_command(id="msg_own")),
        lambda context: resume(context, "default", COMMAND),
        lambda context: archive(context, "default", COMMAND),
        lambda context: get(context, "default", COMMAND),
        lambda context: create(context, "default", create_command(id="ses_1")),
        lambda context: fork(context, "default", ForkSession(session_id="ses_1")),
        lambda context: read_history(context, "default", ReadHistory(session_id="ses_1")),
        lambda context: read_history(context, "default", ReadHistory(session_id="ses_1", after=3)),
        lambda context: read_page(context, "default", ReadCommits(session_id="ses_1")),
        lambda context: store(
            context, "default", StoreSession(session_id="ses_1", file=stored_file(3, "f" * 64))
        ),
        lambda context: replay(
            context, "default", batch(events, 3).model_copy(update={"restores": None})
        ),
    ]

    for command in commands:
        for each in (context, late):
            with pytest.raises(SessionIsStored, match="fairlead cold restore ses_1"):
                await command(each)

    assert [event["type"] for event in await stored_json(context.eventlog)] == ["session.stored"]
    assert (await explain(context, "default", COMMAND)).state == "stored"
    again = StoreSession(session_id="ses_1", file=stored_file(3))
    assert (await store(context, "default", again)).seq == 0


@pytest.mark.usefixtures("log")
async def test_a_restore_brings_the_same_events_back_after_any_crash(
    context: CommandContext,
) -> None:
    """Each batch comes through another process. The session is stored until the last one."""
    events = await write(context, 5)
    await leave(context, events)

    answer = None
    for start in range(0, 5, 2):
        process = CommandContext(context.eventlog, settings())
        for _ in range(2):
            answer = await replay(process, "default", batch(events[: start + 2], 5))
        assert answer is not None
        assert answer.seq == min(start + 2, 5)
        if start < 4:
            assert await kind_of(get(process, "default", COMMAND)) == "SessionStoredError"
            history = read_history(process, "default", ReadHistory(session_id="ses_1", after=5))
            assert await kind_of(history) == "SessionStoredError"

    marker, *back = await stored_json(context.eventlog)
    assert (marker["seq"], back) == (0, events)
    await prompt(context, "default", prompt_command())
    assert (await context.load(AT)).seq == 6
    page = await read_page(context, "default", ReadCommits(session_id="ses_1"))
    assert not any("session.stored" in commit for commit in page.commits)
    copy = await fork(context, "default", ForkSession(session_id="ses_1", id="ses_copy"))
    assert copy.id == "ses_copy"


@pytest.mark.usefixtures("log")
async def test_only_the_file_that_the_marker_names_restores(context: CommandContext) -> None:
    """An edited, a foreign and a shorter file are refused, before and in the middle of a restore."""
    events = await write(context, 4)
    assert await kind_of(replay(context, "default", batch(events[:1], 9))) == "NotStored"
    await leave(context, events)
    wanted = TransferredSession(session_id="ses_1", through=4, directory="/nowhere")

    for _ in range(2):
        before = await stored_json(context.eventlog)
        other = batch(events, 4, restores="f" * 64)
        assert await kind_of(replay(context, "default", other)) == "OtherFile"
        assert await kind_of(replay(context, "default", batch(events[:3], 3))) == "OtherFile"
        foreign = CheckTransfer(sessions=(wanted,), restores="f" * 64)
        assert await kind_of(check(context, "default", foreign)) == "OtherFile"
        assert await stored_json(context.eventlog) == before
        await replay(context, "default", batch(events[:2], 4))
    ours = CheckTransfer(sessions=(wanted,), restores=DIGEST)
    assert (await check(context, "default", ours)).sessions[0].seq == 2


async def test_a_restore_waits_until_the_log_is_erased(
    context: CommandContext, log: MemoryLog
) -> None:
    """Otherwise the log would have each seq twice."""
    events = await write(context)
    await store(context, "default", StoreSession(session_id="ses_1", file=stored_file(3)))

    with pytest.raises(ServiceUnavailable, match="not erased"):
        await replay(context, "default", batch(events, 3))

    await log.erase(AT, before=await log.last_commit_position(AT))
    assert (await replay(context, "default", batch(events, 3))).seq == 3


@pytest.mark.usefixtures("log")
async def test_an_origin_does_not_keep_a_session_in_its_file(context: CommandContext) -> None:
    """H-23: who replays into a session does not matter to what was here before."""
    events = await write(context, 4)
    await context.eventlog.origins.claim(AT, "east")
    await leave(context, events)

    answers = [
        await replay(context, "default", batch(part, 4)) for part in (events[:2], events[2:])
    ]

    assert [(answer.seq, answer.skipped) for answer in answers] == [(2, False), (4, False)]


@pytest.mark.parametrize("restored", [0, 2])
async def test_a_stored_session_can_be_purged(
    context: CommandContext, log: MemoryLog, restored: int
) -> None:
    """H-29: the last word comes after every seq that clients have seen, also during a restore."""
    events = await write(context, 4)
    await leave(context, events)
    if restored:
        await replay(context, "default", batch(events[:restored], 4))

    assert (await delete(context, "default", COMMAND)).seq == 5

    assert await log.head(AT) == START
    with pytest.raises(SessionNotFound):
        await get(context, "default", COMMAND)
    assert await kind_of(replay(context, "default", batch(events, 4))) == "Purged"
    with pytest.raises(Conflict, match="used up"):
        await create(context, "default", create_command(id="ses_1"))


@pytest.mark.usefixtures("log")
async def test_a_session_that_moved_or_works_is_not_stored(context: CommandContext) -> None:
    await write(context)
    too_old = StoreSession(session_id="ses_1", file=stored_file(2))
    await prompt(CommandContext(context.eventlog, settings()), "default", prompt_command())
    await feed(context)
    at_work = StoreSession(session_id="ses_1", file=stored_file(4))

    for command, reason in ((too_old, "export it again"), (at_work, "interrupt it")):
        with pytest.raises(Conflict, match=reason):
            await store(context, "default", command)

    assert len(await stored_json(context.eventlog)) == 4


@pytest.mark.usefixtures("log")
async def test_two_ingests_that_get_the_same_store_both_say_that_it_is_done(
    context: CommandContext,
) -> None:
    """A gateway repeats a slow command at other ingests. A refusal would let the command drop its file."""
    await write(context)
    others = [CommandContext(context.eventlog, settings()) for _ in range(3)]
    command = StoreSession(session_id="ses_1", file=stored_file(3))

    answers = await asyncio.gather(*(store(each, "default", command) for each in others))

    assert [answer.seq for answer in answers] == [0, 0, 0]
    stored = await stored_json(context.eventlog)
    assert [event["type"] for event in stored].count("session.stored") == 1


@pytest.mark.usefixtures("log")
async def test_a_session_stays_until_the_feed_has_all_its_events(context: CommandContext) -> None:
    """A restore publishes nothing, so what is erased before the feed has it would never come."""
    await write(context)
    await archive(context, "default", COMMAND)
    command = StoreSession(session_id="ses_1", file=stored_file(4))

    with pytest.raises(ServiceUnavailable, match="feed"):
        await store(context, "default", command)
    await feed(context, held=True)
    with pytest.raises(ServiceUnavailable, match="feed"):
        await store(context, "default", command)
    assert len(await stored_json(context.eventlog)) == 4

    await feed(context)
    assert (await store(context, "default", command)).seq == 0
    assert (await store(context, "default", command)).seq == 0


async def test_a_marker_waits_until_the_upgrade_is_finalised(context: CommandContext) -> None:
    """A13: an older release could not go on behind it."""
    await write(context, 2)

    with pytest.raises(InvalidRequest, match="provision --finalise"):
        await store(context, "default", StoreSession(session_id="ses_1", file=stored_file(2)))
