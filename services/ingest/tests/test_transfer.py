"""The verbs of a transfer: batches are replayed by the rules, nobody is woken, nothing is half taken."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.registers import MemoryLogStatus
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import START
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs.execution.resume import resume
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_ingest.verbs.profile.get import get
from fairlead_ingest.verbs.transfer.check import check
from fairlead_ingest.verbs.transfer.claim import claim
from fairlead_ingest.verbs.transfer.output import store_output
from fairlead_ingest.verbs.transfer.page import read_page
from fairlead_ingest.verbs.transfer.replay import replay
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.commands.transfer import (
    CheckTransfer,
    ClaimOrigin,
    ReadCommits,
    ReplayEvents,
    StoreOutput,
    TransferredSession,
)
from fairlead_schema.errors import (
    Conflict,
    InvalidExport,
    Refused,
    ReplayConflict,
    SessionNotFound,
)
from fairlead_schema.events import ExecutionClaimed, SessionArchived
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.checksum import ChecksumState, check_checksum
from fairlead_session.transfer.events import stored_events
from fairlead_testing.exports import PARENT, parent_life, stored_life
from services.ingest.tests.conftest import (
    append_events,
    create_command,
    create_session,
    prompt_command,
    settings,
    wakes,
)

AT = Address("default", PARENT)
EVENTS = stored_life(parent_life("/work"), PARENT)
THROUGH = len(EVENTS)


@pytest.fixture
async def eventlog() -> EventLog:
    status = MemoryLogStatus()
    await status.finalise(LEVEL_NEWEST)
    log = MemoryLog(status)
    return replace(memory_eventlog(), log=log, shards=log, status=status)


def batch(events: list[dict[str, Any]] | None = None, **fields: Any) -> ReplayEvents:  # noqa: ANN401
    commit = {"id": "cmt_1", "events": EVENTS if events is None else events}
    values = {"sessionID": PARENT, "commits": [commit]}
    return ReplayEvents.model_validate({"through": THROUGH, **values, **fields})


def wanted(**fields: Any) -> CheckTransfer:  # noqa: ANN401
    session = {"sessionID": PARENT, "through": THROUGH, "directory": "/work", **fields}
    return CheckTransfer(sessions=(TransferredSession.model_validate(session),))


async def stored(eventlog: EventLog, at: Address = AT) -> list[dict[str, Any]]:
    entries = eventlog.shards.session_entries(at, after=0)
    return [event async for entry in entries for event in stored_events(entry.payload)]


async def fault_of(context: CommandContext, command: ReplayEvents) -> tuple[type[Refused], str]:
    with pytest.raises(Refused) as caught:
        await replay(context, "default", command)
    return type(caught.value), caught.value.body.kind or ""


async def test_a_full_replay_reproduces_the_session(
    context: CommandContext, eventlog: EventLog
) -> None:
    """H-14, H-22: events, callers, inbox and transcript are those of the origin; nobody is woken."""
    answer = await replay(context, "default", batch())

    assert (answer.seq, answer.accepted, answer.skipped) == (THROUGH, THROUGH, False)
    assert await stored(eventlog) == EVENTS
    assert wakes(eventlog) == []
    session = await context.load(AT)
    assert "msg_mine" in session.inbox.admissions
    assert not session.is_incomplete
    (entry,) = [item async for item in eventlog.shards.session_entries(AT, after=0)]
    assert check_checksum(AT, entry.payload) is ChecksumState.VALID


async def test_an_exact_repeat_writes_nothing(context: CommandContext, eventlog: EventLog) -> None:
    """H-16: in one batch, in others, and from another process."""
    await replay(context, "default", batch())

    for again in (context, CommandContext(eventlog, settings())):
        for events in (EVENTS, EVENTS[3:9], EVENTS[:1], []):
            answer = await replay(again, "default", batch(events))
            assert (answer.seq, answer.accepted) == (THROUGH, 0)
    assert len(await stored(eventlog)) == THROUGH


async def test_later_chunks_follow_and_overlap(context: CommandContext, eventlog: EventLog) -> None:
    """H-21: another process goes on where the first one died."""
    await replay(context, "default", batch(EVENTS[:7]))
    other = CommandContext(eventlog, settings())
    answer = await replay(other, "default", batch(EVENTS[4:]))

    assert (answer.seq, answer.accepted) == (THROUGH, THROUGH - 7)
    assert await stored(eventlog) == EVENTS


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([EVENTS[0], EVENTS[1] | {"time": 7}, *EVENTS[2:]], "Divergent"),
        (EVENTS[9:], "Gap"),
        ([*EVENTS[5:9], EVENTS[10]], "Gap"),
        ([*EVENTS[5:7], EVENTS[7] | {"id": EVENTS[0]["id"]}], "ForeignEventID"),
    ],
)
async def test_what_does_not_fit_is_refused_and_changes_nothing(
    context: CommandContext, eventlog: EventLog, events: list[dict[str, Any]], kind: str
) -> None:
    """H-17, H-18, H-04"""
    await replay(context, "default", batch(EVENTS[:7]))

    assert await fault_of(context, batch(events)) == (ReplayConflict, kind)
    assert await stored(eventlog) == EVENTS[:7]


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([EVENTS[0], EVENTS[0] | {"time": 7}], "Malformed"),
        ([EVENTS[0] | {"type": "dreamt"}], "UnknownEvent"),
        ([EVENTS[0] | {"data": {}}], "Malformed"),
        ([EVENTS[0] | {"extra": 1}], "Malformed"),
        ([EVENTS[0] | {"by": 7}], "Malformed"),
        ([{"seq": 1}], "Malformed"),
        ([EVENTS[0] | {"seq": 99}], "Rule"),
    ],
)
async def test_events_that_cannot_be_used_are_refused(
    context: CommandContext, eventlog: EventLog, events: list[dict[str, Any]], kind: str
) -> None:
    """H-19, H-21"""
    assert await fault_of(context, batch(events)) == (InvalidExport, kind)
    assert await stored(eventlog) == []


async def test_events_of_another_session_are_refused(
    context: CommandContext, eventlog: EventLog
) -> None:
    """H-20"""
    command = batch(sessionID="ses_other")

    assert await fault_of(context, command) == (InvalidExport, "OtherAggregate")
    assert await stored(eventlog, Address("default", "ses_other")) == []


async def test_an_origin_claims_and_others_are_skipped_or_refused(
    context: CommandContext, eventlog: EventLog
) -> None:
    """H-24, H-25, H-26"""
    await replay(context, "default", batch(EVENTS[:7], origin="east"))

    skipped = await replay(context, "default", batch(EVENTS[:9], origin="west"))
    assert (skipped.skipped, skipped.accepted, skipped.seq) == (True, 0, 7)
    for events in (EVENTS[:9], EVENTS[:7]):
        command = batch(events, origin="west", strict=True)
        assert await fault_of(context, command) == (ReplayConflict, "Origin")
    assert len(await stored(eventlog)) == 7
    assert (await replay(context, "default", batch(origin="east"))).seq == THROUGH


async def test_an_exact_repeat_claims_a_session_without_an_origin(
    context: CommandContext, eventlog: EventLog
) -> None:
    """H-24"""
    await replay(context, "default", batch())
    await replay(context, "default", batch(origin="east"))

    assert await eventlog.origins.find(AT) == "east"


async def test_a_claim_replaces_the_origin_of_a_session_that_exists(
    context: CommandContext, eventlog: EventLog
) -> None:
    """H-23"""
    command = ClaimOrigin(session_id=PARENT, origin="west")
    with pytest.raises(SessionNotFound):
        await claim(context, "default", command)
    await replay(context, "default", batch(origin="east"))

    assert (await claim(context, "default", command)).origin == "west"
    assert await eventlog.origins.find(AT) == "west"


async def test_a_session_in_the_middle_of_its_import_takes_no_command(
    context: CommandContext, eventlog: EventLog
) -> None:
    """It never runs half-way: only the rest of the import or a purge follow."""
    await replay(context, "default", batch(EVENTS[:7]))

    with pytest.raises(Conflict, match="being imported"):
        await prompt(context, "default", prompt_command(sessionID=PARENT))
    with pytest.raises(Conflict, match="being imported"):
        await resume(context, "default", SessionCommand(session_id=PARENT))
    assert len(await stored(eventlog)) == 7
    assert wakes(eventlog) == []
    assert (await replay(context, "default", batch())).seq == THROUGH
    await resume(context, "default", SessionCommand(session_id=PARENT))


async def test_an_import_that_nobody_completes_can_be_purged(context: CommandContext) -> None:
    await replay(context, "default", batch(EVENTS[:16]))

    await delete(context, "default", SessionCommand(session_id=PARENT))

    with pytest.raises(SessionNotFound):
        await get(context, "default", SessionCommand(session_id=PARENT))
    assert await fault_of(context, batch()) == (ReplayConflict, "Purged")
    with pytest.raises(ReplayConflict, match="purged"):
        await check(context, "default", wanted())


async def test_message_ids_of_callers_are_bound_again(context: CommandContext) -> None:
    """D8: after an import a used id is not accepted in another session."""
    await replay(context, "default", batch())
    await create_session(context, "ses_2")

    with pytest.raises(Conflict):
        await prompt(context, "default", prompt_command(sessionID="ses_2", id="msg_mine"))


async def test_a_message_id_of_another_session_is_a_conflict_that_changes_nothing(
    context: CommandContext, eventlog: EventLog
) -> None:
    await create_session(context, "ses_2")
    await prompt(context, "default", prompt_command(sessionID="ses_2", id="msg_mine"))

    with pytest.raises(ReplayConflict, match="ses_2"):
        await check(context, "default", wanted(messageIDs=["msg_free", "msg_mine"]))
    assert await fault_of(context, batch()) == (ReplayConflict, "MessageIDInUse")
    assert await stored(eventlog) == []
    assert await eventlog.message_ids.find("default", "msg_free") is None


async def test_a_session_that_works_here_is_left_alone(
    context: CommandContext, eventlog: EventLog
) -> None:
    await create(context, "default", create_command(id=PARENT))
    await append_events(eventlog, ExecutionClaimed(generation=1, runner="run_b"), at=AT)

    with pytest.raises(ReplayConflict, match="works here"):
        await check(context, "default", wanted())
    assert (await fault_of(context, batch()))[1] == "Running"


async def test_another_session_of_this_id_is_divergent(context: CommandContext) -> None:
    await create(context, "default", create_command(id=PARENT))

    assert (await fault_of(context, batch(check=True)))[1] == "Divergent"


async def test_a_check_says_how_much_is_here_and_writes_nothing(
    context: CommandContext, eventlog: EventLog
) -> None:
    (fresh,) = (await check(context, "default", wanted())).sessions
    await replay(context, "default", batch(EVENTS[:7]))
    (begun,) = (await check(context, "default", wanted())).sessions
    judged = await replay(context, "default", batch(check=True))

    assert (fresh.seq, begun.seq, judged.seq, judged.accepted) == (0, 7, 7, THROUGH - 7)
    assert len(await stored(eventlog)) == 7


async def test_a_location_outside_of_the_roots_is_refused_with_what_to_do(
    eventlog: EventLog,
) -> None:
    config = settings().config.model_copy(update={})
    values = config.model_dump() | {"location": {"roots": ["/srv"], "default": "/srv"}}
    context = CommandContext(eventlog, IngestSettings(type(config).model_validate(values)))

    with pytest.raises(ReplayConflict, match=r"outside the configured roots.*add it") as caught:
        await check(context, "default", wanted())
    assert caught.value.body.kind == "Location"


async def test_an_import_waits_until_its_level_is_finalised() -> None:
    """An older release would run a session before its import is complete."""
    context = CommandContext(memory_eventlog(), settings())

    with pytest.raises(ReplayConflict, match="--finalise"):
        await check(context, "default", wanted())


async def test_a_local_commit_between_two_batches_is_divergent(
    context: CommandContext, eventlog: EventLog
) -> None:
    await replay(context, "default", batch(EVENTS[:7]))
    await append_events(eventlog, SessionArchived(), at=AT)

    assert (await fault_of(context, batch()))[1] == "Divergent"


async def test_an_output_comes_in_parts_and_never_replaces_another(
    context: CommandContext, eventlog: EventLog
) -> None:
    first = StoreOutput(
        session_id=PARENT, id="out_1", upload="u1", part=0, first_bytes=2, data=b"YWI="
    )
    last = first.model_copy(
        update={
            "part": 1,
            "data": b"c",
            "mime": "text/plain",
            "bytes": 3,
            "digest": sha256(b"abc").hexdigest(),
        }
    )
    assert not (await store_output(context, "default", first)).complete
    assert await eventlog.outputs.stat("default", "out_1") is None
    assert (await store_output(context, "default", last)).complete

    again = first.model_copy(update={"upload": "u2", "data": b"zz"})
    assert (await store_output(context, "default", again)).complete
    read = [piece async for piece in eventlog.outputs.get("default", "out_1")]
    assert b"".join(read) == b"abc"


async def test_a_page_holds_commits_byte_for_byte(
    context: CommandContext, eventlog: EventLog
) -> None:
    for number in range(0, THROUGH, 5):
        await replay(context, "default", batch(EVENTS[number : number + 5]))
    entries = [entry async for entry in eventlog.shards.session_entries(AT, after=0)]

    read: list[str] = []
    after: int | None = 0
    while after is not None:
        page = await read_page(
            context, "default", ReadCommits(session_id=PARENT, after=after, limit=2)
        )
        read += page.commits
        after = page.next

    assert [commit.encode() for commit in read] == [entry.payload for entry in entries]
    with pytest.raises(SessionNotFound):
        await read_page(context, "default", ReadCommits(session_id="ses_none"))
    assert await eventlog.log.head(Address("default", "ses_none")) == START
