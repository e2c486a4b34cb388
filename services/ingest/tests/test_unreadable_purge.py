"""A session whose log nobody can read can still be purged, and is gone for every caller (D7)."""

import asyncio
from dataclasses import replace

import pytest
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import START, Head, StoredCommit
from fairlead_eventlog.process_life import Nudge
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.events import (
    ExecutionClaimed,
    SessionArchived,
    SessionPurged,
    StepEnded,
    StepStarted,
)
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId
from fairlead_schema.record import Commit, Draft, RecordError, encode, record
from fairlead_schema.subjects import Address
from fairlead_service import ids
from services.ingest.tests.conftest import (
    AT,
    append_events,
    create_session,
    prompt_command,
    settings,
)

COMMAND = SessionCommand(session_id="ses_1")
FUTURE = (
    b'{"id":"cmt_x","events":[{"id":"evt_x","seq":%d,"type":"from.the.future","version":9,'
    b'"time":1,"data":{}}]}'
)


def _archived(seq: int) -> bytes:
    draft = Draft(ids.event_id(), 1, SessionArchived())
    return encode(Commit(ids.commit_id(), record((draft,), after=seq - 1)))


def _last(log: MemoryLog) -> StoredCommit:
    last = log._sessions[AT][-1]  # noqa: SLF001 - what stands in the log, readable or not before it
    assert isinstance(last, StoredCommit)
    return last


@pytest.fixture
def log(eventlog: EventLog) -> MemoryLog:
    assert isinstance(eventlog.log, MemoryLog)
    return eventlog.log


@pytest.mark.parametrize(
    ("forged", "seq"),
    [
        pytest.param((FUTURE % 3,), 4, id="newer version at the end"),
        pytest.param((FUTURE % 3, _archived(4)), 5, id="newer version in the middle"),
        pytest.param((_archived(9),), 10, id="gap"),
        pytest.param((_archived(2),), 3, id="another event in a used place"),
        pytest.param((b"\xff not json",), 3, id="no JSON"),
        pytest.param((b"",), 3, id="empty"),
        pytest.param((b'{"id":"c","events":[{"seq":1e400}]}',), 3, id="a seq without bounds"),
    ],
)
async def test_whatever_stands_in_the_log_its_session_can_be_purged(
    context: CommandContext, log: MemoryLog, forged: tuple[bytes, ...], seq: int
) -> None:
    """D7, H-29: the last event goes behind the leader's end, without a fold."""
    await create_session(context)
    await prompt(context, "default", prompt_command())
    for payload in forged:
        await log.append_raw(AT, payload)

    answer = await delete(context, "default", COMMAND)

    assert (answer.seq, _last(log).is_purge, _last(log).head.seq) == (seq, True, seq)
    assert await log.head(AT) == START
    # Nobody finds it, although the projector has not erased what is unreadable.
    with pytest.raises(SessionNotFound):
        await delete(context, "default", COMMAND)
    with pytest.raises(SessionNotFound):
        await prompt(context, "default", prompt_command())


async def test_an_unreadable_log_without_a_beginning_can_be_purged(
    context: CommandContext, log: MemoryLog
) -> None:
    await log.append_raw(AT, b"nonsense")

    await delete(context, "default", COMMAND)

    assert _last(log).is_purge


async def test_an_event_behind_the_last_word_can_be_purged(
    context: CommandContext, eventlog: EventLog, log: MemoryLog
) -> None:
    """A11: the last word counts only at the end of a log."""
    await create_session(context)
    await delete(context, "default", COMMAND)
    await log.append_raw(AT, _archived(3))
    context.forget(AT)

    await delete(context, "default", COMMAND)

    assert _last(log).is_purge
    assert await eventlog.log.head(AT) == START


async def test_what_is_readable_is_told_and_counted(
    context: CommandContext, eventlog: EventLog, log: MemoryLog
) -> None:
    """A12, H-29: the owner stops at once, and a purge gives no budget back."""
    nudges: list[Nudge] = []
    await eventlog.liveness.start_answering("run_a", nudges.append)
    await create_session(context)
    started = StepStarted(
        assistant_message_id="msg_a", agent="build", model=ModelRef(provider_id="acme", id="fast")
    )
    ended = StepEnded.model_validate(
        {"assistantMessageID": "msg_a", "finish": "stop", "cost": 0.25, "tokens": {"input": 7}}
    )
    claimed = ExecutionClaimed(generation=1, runner="run_a")
    await append_events(eventlog, claimed, started, ended)
    await log.append_raw(AT, FUTURE % 5)

    await delete(context, "default", COMMAND)

    purged = _last(log).commit.events[-1].event
    assert isinstance(purged, SessionPurged)
    assert (purged.cost, purged.tokens, [nudge.at for nudge in nudges]) == (0.25, 7, [AT])


class _RacedLog(MemoryLog):
    """Another writer commits what nobody can read, just before each of the first appends."""

    races = 0

    @override
    async def append(
        self,
        at: Address,
        commit_id: CommitId,
        drafts: tuple[Draft, ...],
        *,
        after: Head,
        by: PrincipalName | None = None,
    ) -> StoredCommit:
        if self.races:
            self.races -= 1
            await self.append_raw(at, FUTURE % (after.seq + 1))
        await asyncio.sleep(0)
        return await super().append(at, commit_id, drafts, after=after, by=by)


@pytest.mark.parametrize("races", [3, 1000])
async def test_a_writer_that_goes_on_delays_the_purge_and_never_loses_its_fence(
    eventlog: EventLog, races: int
) -> None:
    """A newer release may still be writing. The last word is the last commit, or there is none."""
    log = _RacedLog()
    context = CommandContext(replace(eventlog, log=log), settings())
    await create_session(context)
    await log.append_raw(AT, FUTURE % 2)
    log.races = races

    if races < 32:
        await delete(context, "default", COMMAND)
        assert _last(log).is_purge
        assert _last(log).head.seq == 3 + races
    else:
        with pytest.raises(ServiceUnavailable, match="busy"):
            await delete(context, "default", COMMAND)
        with pytest.raises(RecordError):
            await log.head(AT)
