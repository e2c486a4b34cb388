"""Commands to sessions that ingest follows: no read before the append, and no refusal from an old state."""

import asyncio
from dataclasses import replace

import pytest
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import CommitPage, Head
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_schema.errors import Conflict, SessionNotFound
from fairlead_schema.events import (
    ExecutionClaimed,
    ExecutionReleased,
    InputCancelled,
    PromptAdmitted,
    SessionPurged,
)
from fairlead_schema.subjects import Address
from services.ingest.tests.conftest import (
    AT,
    append_events,
    create_session,
    events,
    prompt_command,
    settings,
)


class CountedLog(MemoryLog):
    """A log that counts its reads."""

    reads = 0

    @override
    async def read(
        self, at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        self.reads += 1
        return await super().read(at, after=after, limit=limit, reach=reach)


def open_log(*, deaf: bool = False) -> tuple[CountedLog, EventLog]:
    """A log that counts, with its broadcasts, or with broadcasts that never come."""
    log = CountedLog()
    broadcasts = MemoryLog() if deaf else log
    return log, replace(memory_eventlog(), log=log, broadcasts=broadcasts, shards=log)


async def test_a_prompt_to_a_followed_session_is_appended_without_a_read() -> None:
    """The runner has written two commits since the last prompt, and its broadcasts came."""
    log, eventlog = open_log()
    context = CommandContext(eventlog, settings())
    await create_session(context)
    for turn in range(3):
        receipt = await prompt(context, "default", prompt_command(resume=False))
        await append_events(eventlog, ExecutionClaimed(generation=turn + 1, runner="run_a"))
        cancelled = InputCancelled(message_id=receipt.id)
        released = ExecutionReleased(generation=turn + 1, reason="idle")
        await append_events(eventlog, cancelled, released)
    log.reads = 0

    await prompt(context, "default", prompt_command(id="msg_1", resume=False))
    await prompt(context, "default", prompt_command(resume=False))

    assert log.reads == 0
    assert (await context.load(AT)).seq == 1 + 3 * 4 + 2


async def test_several_ingests_share_a_session() -> None:
    """Each follows the commits of the other; a conflict is read and decided again."""
    _log, eventlog = open_log()
    contexts = [CommandContext(eventlog, settings(pending_inputs_max=50)) for _ in range(3)]
    await create_session(contexts[0])

    receipts = [
        await prompt(contexts[number % 3], "default", prompt_command(id=f"msg_{number}"))
        for number in range(9)
    ]

    assert [receipt.admitted_seq for receipt in receipts] == list(range(2, 11))


async def test_a_deaf_ingest_refuses_nothing_from_its_old_state() -> None:
    """ADR 0025: a broadcast that was lost never becomes a refusal."""
    _log, eventlog = open_log(deaf=True)
    context = CommandContext(eventlog, settings(pending_inputs_max=1))
    await create_session(context)
    first = await prompt(context, "default", prompt_command(id="msg_1", resume=False))
    await append_events(eventlog, InputCancelled(message_id=first.id))

    second = await prompt(context, "default", prompt_command(id="msg_2", resume=False))

    assert second.admitted_seq == 4


async def test_a_deaf_ingest_writes_nothing_behind_what_it_did_not_hear() -> None:
    _log, eventlog = open_log(deaf=True)
    context = CommandContext(eventlog, settings())
    await create_session(context)
    receipt = await prompt(context, "default", prompt_command(id="msg_1", resume=False))
    await append_events(eventlog, InputCancelled(message_id=receipt.id))

    with pytest.raises(Conflict):
        await prompt(context, "default", prompt_command(id="msg_1", resume=False))

    assert (
        len([event for event in await events(eventlog) if isinstance(event, PromptAdmitted)]) == 1
    )


@pytest.mark.parametrize("deaf", [False, True], ids=["heard", "not heard"])
async def test_a_session_that_was_purged_elsewhere_is_not_found(*, deaf: bool) -> None:
    """H-29: also if the broadcast of the purge was lost."""
    _log, eventlog = open_log(deaf=deaf)
    context = CommandContext(eventlog, settings())
    await create_session(context)
    await prompt(context, "default", prompt_command(resume=False))
    await append_events(eventlog, SessionPurged())

    with pytest.raises(SessionNotFound):
        await prompt(context, "default", prompt_command(resume=False))


async def test_a_session_that_does_not_exist_is_not_followed() -> None:
    """Whoever guesses ids does not push out the sessions that are in use."""
    log, eventlog = open_log()
    context = CommandContext(eventlog, settings())

    with pytest.raises(SessionNotFound):
        await prompt(context, "default", prompt_command())

    assert log.listeners[AT] == []


async def test_a_session_at_rest_needs_neither_a_read_nor_its_broadcasts() -> None:
    """Only commands are written to it, and they come through here."""
    log, eventlog = open_log()
    context = CommandContext(eventlog, settings())
    await create_session(context)
    log.reads = 0

    for _ in range(3):
        await prompt(context, "default", prompt_command(resume=False))

    assert (log.reads, log.listeners[AT]) == (0, [])


async def test_a_session_is_followed_as_soon_as_somebody_else_writes_to_it() -> None:
    log, eventlog = open_log()
    here, elsewhere = (CommandContext(eventlog, settings()) for _ in range(2))
    await create_session(here)
    await prompt(here, "default", prompt_command(id="msg_1", resume=False))
    await prompt(elsewhere, "default", prompt_command(id="msg_2", resume=False))

    third = await prompt(here, "default", prompt_command(id="msg_3", resume=False))

    assert (third.admitted_seq, len(log.listeners[AT])) == (4, 1)


async def test_a_session_is_followed_before_its_wake_leaves() -> None:
    log, eventlog = open_log()
    context = CommandContext(eventlog, settings())
    await create_session(context)

    await prompt(context, "default", prompt_command())

    assert len(log.listeners[AT]) == 1


async def test_commands_that_come_together_need_neither() -> None:
    """Each is decided from what the one before has written here."""
    log, eventlog = open_log()
    context = CommandContext(eventlog, settings())
    await create_session(context)
    log.reads = 0

    receipts = await asyncio.gather(
        *(prompt(context, "default", prompt_command(resume=False)) for _ in range(3))
    )

    assert sorted(receipt.admitted_seq for receipt in receipts) == [2, 3, 4]
    assert (log.reads, log.listeners[AT]) == (0, [])
