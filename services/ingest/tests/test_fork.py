"""`session.fork`: a marked copy up to a message, once, that goes on by itself never."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.registers import MemoryLogStatus
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import START, StoredCommit
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.transfer import fork as fork_verb
from fairlead_ingest.verbs.transfer.fork import fork
from fairlead_schema.commands.session import ForkSession
from fairlead_schema.errors import Conflict, MessageNotFound, SessionNotFound
from fairlead_schema.events import (
    PromptAdmitted,
    SessionArchived,
    SessionCreated,
    ShellRequested,
    ShellStarted,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import (
    LEVEL_NEWEST,
    Commit,
    Draft,
    ImportMark,
    encode_import,
    event_json,
    record,
)
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.next_move import Stop, next_move
from fairlead_session.transfer.events import stored_events
from fairlead_session.verify.verify import verify
from fairlead_testing.exports import PARENT, parent_life
from services.ingest.tests.conftest import append_events, prompt_command, wait_until, wakes

AT, COPY = Address("default", PARENT), Address("default", "ses_copy")


async def _events(eventlog: EventLog, at: Address) -> list[dict[str, object]]:
    entries = eventlog.shards.session_entries(at, after=0)
    return [event async for entry in entries for event in stored_events(entry.payload)]


def _command(message_id: str | None = None) -> ForkSession:
    return ForkSession.model_construct(session_id=PARENT, id=COPY.session_id, message_id=message_id)


@pytest.fixture
async def eventlog() -> EventLog:
    status = MemoryLogStatus()
    await status.finalise(LEVEL_NEWEST)
    log = MemoryLog(status)
    return replace(memory_eventlog(), log=log, shards=log, status=status)


@pytest.fixture
async def original(eventlog: EventLog) -> None:
    for _by, events in parent_life("/work"):
        await append_events(eventlog, *events, at=AT)


@pytest.mark.usefixtures("original")
async def test_a_fork_is_a_copy_with_ids_of_its_own_and_nothing_runs(
    context: CommandContext, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_verb, "BATCH_BYTES", 500)
    before = await _events(eventlog, AT)

    forked = await fork(context, "default", _command())
    again = await fork(context, "default", _command())

    copied = await _events(eventlog, COPY)
    assert (forked.id, again.id) == (COPY.session_id, COPY.session_id)
    assert [event["type"] for event in copied[: len(before)]] == [event["type"] for event in before]
    assert {event["id"] for event in copied}.isdisjoint(event["id"] for event in before)
    assert await _events(eventlog, AT) == before
    assert wakes(eventlog) == []
    session = (await context.load_confirmed(COPY)).state
    assert not session.is_incomplete
    page = await eventlog.log.read(COPY, after=(await eventlog.log.locate(COPY, 0)))
    recorded = [event for stored in page.commits for event in stored.commit.events]
    assert list(verify(recorded)) == []


@pytest.mark.usefixtures("original")
async def test_a_fork_ends_before_its_message(context: CommandContext, eventlog: EventLog) -> None:
    before = await _events(eventlog, AT)
    place, promoted = next(
        (place, event) for place, event in enumerate(before) if event["type"] == "prompt.promoted"
    )

    await fork(context, "default", _command(promoted["data"]["messageID"]))  # type: ignore[index]

    copied = await _events(eventlog, COPY)
    session = (await context.load_confirmed(COPY)).state
    assert [event["type"] for event in copied[:place]] == [
        event["type"] for event in before[:place]
    ]
    assert {event["type"] for event in copied[place:]} <= {"input.cancelled"}
    assert session.inbox.pending == ()
    receipt = await prompt(context, "default", prompt_command("go on", sessionID=COPY.session_id))
    assert receipt.session_id == COPY.session_id


@pytest.mark.usefixtures("original")
async def test_bad_forks_are_refused_and_write_nothing(
    context: CommandContext, eventlog: EventLog
) -> None:
    with pytest.raises(MessageNotFound):
        await fork(context, "default", _command("msg_nobody"))
    with pytest.raises(SessionNotFound):
        await fork(context, "other", _command())
    with pytest.raises(Conflict):
        await fork(context, "default", _command().model_copy(update={"id": PARENT}))
    assert await _events(eventlog, COPY) == []


@pytest.mark.usefixtures("original")
async def test_a_fork_that_died_goes_on_where_it_stopped(
    context: CommandContext, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until all of it is there, nobody can use the copy; the same command brings the rest, once."""
    monkeypatch.setattr(fork_verb, "BATCH_BYTES", 500)
    whole, restore = len(await _events(eventlog, AT)), eventlog.log.restore

    async def fail(*_args: object, **_kwargs: object) -> StoredCommit:
        raise LogUnavailable("killed")

    async def store_once(*args: Any, **kwargs: Any) -> StoredCommit:  # noqa: ANN401
        monkeypatch.setattr(eventlog.log, "restore", fail)
        return await restore(*args, **kwargs)

    monkeypatch.setattr(eventlog.log, "restore", store_once)
    with pytest.raises(LogUnavailable):
        await fork(context, "default", _command())
    assert 0 < len(await _events(eventlog, COPY)) < whole
    with pytest.raises(Conflict, match="being imported"):
        await prompt(context, "default", prompt_command("go", sessionID=COPY.session_id))
    monkeypatch.setattr(eventlog.log, "restore", restore)

    await fork(context, "default", _command())

    copied = await _events(eventlog, COPY)
    assert [event["seq"] for event in copied] == list(range(1, len(copied) + 1))
    assert len(copied) >= whole


@pytest.mark.usefixtures("original")
async def test_a_fork_that_died_behind_its_copy_leaves_the_input_of_the_original(
    context: CommandContext, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeated fork withdraws the input in one commit. Input of the copy itself stays after that."""
    waits = PromptAdmitted(message_id="msg_p", prompt=Prompt(text="go"), delivery="queue")
    await append_events(eventlog, waits, at=AT)

    async def fail(*_: object) -> SessionInfo:
        raise LogUnavailable("killed")

    with monkeypatch.context() as killed:
        killed.setattr(fork_verb, "_finish", fail)
        with pytest.raises(LogUnavailable):
            await fork(context, "default", _command())
    assert len((await context.peek(COPY)).inbox.pending) == 1

    await fork(context, "default", _command())
    assert (await context.peek(COPY)).inbox.pending == ()

    await prompt(context, "default", prompt_command("go", sessionID=COPY.session_id))
    await fork(context, "default", _command())
    assert len((await context.peek(COPY)).inbox.pending) == 1


@pytest.mark.usefixtures("original")
async def test_the_commands_of_the_original_run_nowhere_else(
    context: CommandContext, eventlog: EventLog
) -> None:
    """One that waits is withdrawn from the fork, and one that runs is stopped there. E-20."""
    before = len(await _events(eventlog, AT))
    requests = [
        ShellRequested(message_id=f"msg_s{n}", call_id=f"call_{n}", command="ls", agent="build")
        for n in range(3)
    ]
    started = ShellStarted(message_id="msg_s0", call_id="call_0", command="ls", agent="build")
    of_prompt = requests[2].model_copy(update={"prompt_id": "msg_p"})
    waits = PromptAdmitted(message_id="msg_p", prompt=Prompt(text="`ls`"), delivery="steer")
    await append_events(eventlog, requests[0], started, requests[1], of_prompt, waits, at=AT)

    await fork(context, "default", _command())
    copy = await context.peek(COPY)
    assert (copy.inbox.pending, copy.inbox.shells) == ((), ())
    assert isinstance(next_move(copy), Stop)
    await wait_until(lambda: len(wakes(eventlog)) == 1)
    assert [call.call_id for call in (await context.peek(AT)).calls] == ["call_0"]

    at_message = ForkSession.model_construct(session_id=PARENT, id="ses_two", message_id="msg_s0")
    await fork(context, "default", at_message)
    assert len(await _events(eventlog, Address("default", "ses_two"))) == before + 2, (
        "all before the start of the command, and its request is withdrawn"
    )


async def import_another(eventlog: EventLog, *, through: int) -> None:
    """Write two events of another session under the id of the copy, as an import does."""
    created = SessionCreated(
        title="other", project_id="prj_1", location=LocationRef(directory="/work")
    )
    drafts = tuple(
        Draft(ids.event_id(), ids.now_ms(), event) for event in (created, SessionArchived())
    )
    recorded, mark = record(drafts, after=0), ImportMark(through)
    payload = encode_import("cmt_other", [event_json(event) for event in recorded], mark)
    commit = Commit("cmt_other", tuple(event._replace(imported=mark) for event in recorded))
    await eventlog.log.restore(COPY, commit, payload, after=START)


@pytest.mark.usefixtures("original")
@pytest.mark.parametrize("through", [2, 9], ids=["complete", "in the middle of its import"])
async def test_a_fork_onto_the_id_of_another_imported_session_leaves_that_session_alone(
    context: CommandContext, eventlog: EventLog, through: int
) -> None:
    """Only the first event tells a copy that died from another session."""
    await import_another(eventlog, through=through)
    before = await _events(eventlog, COPY)

    for _ in range(2):
        with pytest.raises(Conflict, match="another session"):
            await fork(context, "default", _command())

    assert await _events(eventlog, COPY) == before
    assert wakes(eventlog) == []
