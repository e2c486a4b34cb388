"""The auditor: a live log that keeps the rules is silent, and one that breaks a rule is named."""

import asyncio
from collections.abc import Sequence

import pytest
from prometheus_client import REGISTRY

from fairlead_cli.audit.auditor import Auditor
from fairlead_cli.audit.log_follower import LogFollower
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.ports import START, Head, LogEntry
from fairlead_schema import subjects
from fairlead_schema.events import (
    ExecutionClaimed,
    PromptAdmitted,
    PromptPromoted,
    SessionCreated,
    SessionEvent,
    SessionPurged,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import LEVEL_NEWEST, Draft, decode, encode
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.supervise import supervise
from fairlead_testing.stored import marker, replay_commits

AT = Address("default", "ses_audit")
NAMES = [f"ses_{number}" for number in range(100)]
HELLO = Prompt(text="hello")
CREATED = SessionCreated(
    title="A session", project_id="prj_1", location=LocationRef(directory="/work")
)
PROMOTED = PromptPromoted(message_id="msg_1", prompt=HELLO, created=0)
LIFE = (
    CREATED,
    PromptAdmitted(message_id="msg_1", prompt=HELLO, delivery="steer"),
    ExecutionClaimed(generation=1, runner="run_a"),
    PROMOTED,
)


async def write(eventlog: EventLog, at: Address, events: Sequence[SessionEvent]) -> list[LogEntry]:
    """Append the events, one commit each; the answer is the entries of the log."""
    head: Head = START
    for event in events:
        draft = Draft(ids.event_id(), 1, event)
        head = (await eventlog.log.append(at, ids.commit_id(), (draft,), after=head)).head
    return [entry async for entry in eventlog.shards.session_entries(at, after=0)]


def violations_of(rule: str) -> float:
    return REGISTRY.get_sample_value("fairlead_audit_violations_total", {"rule": rule}) or 0.0


async def test_a_life_that_keeps_the_rules_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    eventlog = memory_eventlog()
    auditor = Auditor(eventlog)

    found = [await auditor.add(entry) for entry in await write(eventlog, AT, LIFE)]

    assert found == [[], [], [], []]
    assert caplog.records == []


async def test_a_prompt_that_is_promoted_twice_is_named_with_its_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    eventlog = memory_eventlog()
    entries = await write(eventlog, AT, (*LIFE, PROMOTED))
    auditor = Auditor(eventlog)

    found = [await auditor.add(entry) for entry in entries]

    [violation] = found[-1]
    [line] = caplog.records
    assert vars(line)["session_id"] == AT.session_id
    assert vars(line)["rule"] == violation.rule
    assert violations_of(violation.rule) >= 1


async def test_an_auditor_that_begins_in_the_middle_knows_what_came_before() -> None:
    """A session that it does not hold is read from its beginning, and old violations are not counted again."""
    eventlog = memory_eventlog()
    entries = await write(eventlog, AT, (*LIFE, PROMOTED, PROMOTED))

    found = await Auditor(eventlog).add(entries[-1])

    assert len(found) == 1


async def test_an_entry_that_comes_again_breaks_no_rule() -> None:
    eventlog = memory_eventlog()
    entries = await write(eventlog, AT, LIFE)
    auditor = Auditor(eventlog)

    found = [await auditor.add(entry) for entry in (*entries, *entries)]

    assert not any(found)


async def test_memory_is_bounded_and_a_forgotten_session_is_read_again() -> None:
    eventlog = memory_eventlog()
    others = [Address("default", f"ses_{number}") for number in range(5)]
    auditor = Auditor(eventlog, sessions_max=2)
    first = await write(eventlog, AT, LIFE)
    for entry in first[:-1]:
        await auditor.add(entry)

    for other in others:
        for entry in await write(eventlog, other, LIFE):
            await auditor.add(entry)
    found = await auditor.add(first[-1])

    assert found == []
    assert REGISTRY.get_sample_value("fairlead_audit_sessions_held") == 2


async def test_a_changed_word_is_a_violation() -> None:
    eventlog = memory_eventlog()
    [entry] = await write(eventlog, AT, LIFE[:1])
    title = decode(entry.payload).events[0].event
    assert title == CREATED
    changed = entry._replace(payload=entry.payload.replace(b"session.created", b"session.cheated"))

    found = await Auditor(eventlog).add(changed)

    assert found


async def test_a_follower_verifies_every_shard_from_where_it_stopped() -> None:
    eventlog = memory_eventlog()
    follower = LogFollower(eventlog, Auditor(eventlog))
    before = REGISTRY.get_sample_value("fairlead_audit_commits_total") or 0.0
    for number in range(8):
        await write(eventlog, Address("default", f"ses_{number}"), LIFE)

    tasks = [asyncio.create_task(supervise(name, part)) for name, part in follower.parts().items()]
    try:
        async with asyncio.timeout(30):
            while (REGISTRY.get_sample_value("fairlead_audit_commits_total") or 0) < before + 32:
                await asyncio.sleep(0.01)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_auditor_that_starts_again_misses_nothing_that_came_meanwhile() -> None:
    """The server knows how far the earlier auditor was."""
    eventlog = memory_eventlog()
    await write(eventlog, AT, LIFE)
    shard = subjects.shard(AT.session_id)
    async for _batch in eventlog.shards.follow(shard, after=0, reader="audit"):
        break
    violations = violations_of("promoted-once")
    other = Address("default", next(name for name in NAMES if subjects.shard(name) == shard))
    await write(eventlog, other, (*LIFE, PROMOTED))

    follower = LogFollower(eventlog, Auditor(eventlog))
    await follower.begin(whole=False)
    task = asyncio.create_task(follower.follow(shard))
    try:
        async with asyncio.timeout(30):
            while violations_of("promoted-once") == violations:
                await asyncio.sleep(0.01)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_receipt_without_an_admission_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """Received is admitted or refused: a receipt promises that the log has the prompt."""
    eventlog = memory_eventlog()
    await write(eventlog, AT, LIFE)
    await eventlog.receipts.store(AT, "msg_1", b'{"data":{"id":"msg_1"}}')
    await eventlog.receipts.store(AT, "msg_lost", b'{"data":{"id":"msg_lost"}}')
    await eventlog.receipts.store_refusal(AT, "msg_2", b'{"error":{"_tag":"X"}}', publication=3)

    auditor = Auditor(eventlog)
    found = [await auditor.check_receipt(each) for each in await eventlog.receipts.read_after(0)]

    assert [[violation.rule for violation in each] for each in found] == [[], ["received"], []]
    [line] = caplog.records
    assert vars(line)["session_id"] == AT.session_id
    assert "msg_lost" in vars(line)["detail"]


async def test_a_receipt_of_a_purged_session_promises_nothing() -> None:
    eventlog = memory_eventlog()
    await write(eventlog, AT, (CREATED, SessionPurged()))
    await eventlog.receipts.store(AT, "msg_1", b'{"data":{"id":"msg_1"}}')

    [receipt] = await eventlog.receipts.read_after(0)

    assert await Auditor(eventlog).check_receipt(receipt) == []


async def test_a_session_that_was_stored_and_restored_keeps_the_rules() -> None:
    """ADR 0084: wherever the auditor begins, and whatever is erased by then."""
    eventlog = memory_eventlog()
    await eventlog.status.finalise(LEVEL_NEWEST)
    entries = await write(eventlog, AT, LIFE)
    events = [event for entry in entries for event in decode(entry.payload).events]
    whole, late = Auditor(eventlog), Auditor(eventlog)
    for entry in entries:
        assert await whole.add(entry) == []
    await eventlog.receipts.store(AT, "msg_1", b'{"data":{"id":"msg_1"}}')
    [receipt] = await eventlog.receipts.read_after(0)
    head = await eventlog.log.head(AT)
    draft = (Draft(ids.event_id(), 1, marker(head.seq)),)
    stored = await eventlog.log.append(AT, ids.commit_id(), draft, after=head)

    assert await Auditor(eventlog).check_receipt(receipt) == []
    await eventlog.log.erase(AT, before=stored.position)
    assert await late.check_receipt(receipt) == []
    head = stored.head
    for commit in replay_commits(events, size=3):
        head = (await eventlog.log.restore(AT, commit, encode(commit), after=head)).head
        assert await late.check_receipt(receipt) == []
    behind = [entry async for entry in eventlog.shards.session_entries(AT, after=0)]
    for entry in behind:
        assert await whole.add(entry) == await late.add(entry) == []
    for start in range(len(behind)):
        assert await Auditor(eventlog).add(behind[start]) == []
