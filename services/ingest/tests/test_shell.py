"""`session.shell`: a person's own command is requested once, and a runner is woken."""

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import NotFinalised
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.cancel import cancel
from fairlead_ingest.verbs.input.pending import pending
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.input.shell import shell
from fairlead_schema.commands.input import CancelInput, RequestShell
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import Conflict, LimitReached, SessionNotFound
from fairlead_schema.events import ShellRequested, ShellStarted
from fairlead_schema.record import LEVEL_NEWEST
from services.ingest.tests.conftest import (
    append_events,
    create_session,
    events,
    prompt_command,
    wait_until,
    wakes,
)


@pytest.fixture
async def finalised(context: CommandContext) -> CommandContext:
    await context.eventlog.log._status.finalise(LEVEL_NEWEST)  # type: ignore[attr-defined]  # noqa: SLF001
    await create_session(context)
    return context


def command(text: str = "make test", **fields: object) -> RequestShell:
    return RequestShell.model_validate({"sessionID": "ses_1", "command": text, **fields})


async def test_a_command_is_requested_once_and_wakes_a_runner(
    finalised: CommandContext, eventlog: EventLog
) -> None:
    first = await shell(finalised, "default", command(id="msg_s"))
    again = await shell(finalised, "default", command(id="msg_s"))

    assert first == again
    assert (first.call_id, first.started_seq) == ("call_msg_s", None)
    requested = [event for event in await events(eventlog) if isinstance(event, ShellRequested)]
    assert [(event.command, event.agent) for event in requested] == [("make test", "build")]
    await wait_until(lambda: len(wakes(eventlog)) == 1)


async def test_an_id_belongs_to_one_input(finalised: CommandContext) -> None:
    await shell(finalised, "default", command(id="msg_s"))
    await prompt(finalised, "default", prompt_command(id="msg_p"))

    for id_, text in (("msg_s", "rm -rf ."), ("msg_p", "make test")):
        with pytest.raises(Conflict):
            await shell(finalised, "default", command(text, id=id_))
    with pytest.raises(Conflict):
        await prompt(finalised, "default", prompt_command("make test", id="msg_s"))


async def test_too_many_commands_are_refused(finalised: CommandContext) -> None:
    for number in range(3):
        await shell(finalised, "default", command(id=f"msg_{number}"))
    with pytest.raises(LimitReached):
        await shell(finalised, "default", command(id="msg_more"))


async def test_a_command_that_waits_is_listed_and_cancelled(
    finalised: CommandContext, eventlog: EventLog
) -> None:
    """Like any pending input. A cancelled id is used up."""
    first = await shell(finalised, "default", command(id="msg_s"))
    await shell(finalised, "default", command("ls", id="msg_t"))
    session = SessionCommand(session_id="ses_1")
    listed = await pending(finalised, "default", session)
    assert (listed.inputs, listed.shells[0]) == ((), first)

    await cancel(finalised, "default", CancelInput(session_id="ses_1", message_id="msg_s"))
    left = await pending(finalised, "default", session)
    assert [item.command for item in left.shells] == ["ls"]
    with pytest.raises(Conflict):
        await shell(finalised, "default", command(id="msg_s"))
    started = ShellStarted(message_id="msg_t", call_id="call_msg_t", command="ls", agent="build")
    await append_events(eventlog, started)
    with pytest.raises(Conflict, match="already promoted"):
        await cancel(finalised, "default", CancelInput(session_id="ses_1", message_id="msg_t"))


async def test_a_command_needs_a_session(context: CommandContext) -> None:
    for fields in ({}, {"id": "msg_s"}):
        with pytest.raises(SessionNotFound):
            await shell(context, "default", command(**fields))


async def test_no_command_is_written_while_an_older_release_may_read_the_log(
    context: CommandContext, eventlog: EventLog
) -> None:
    """C-26: until the level is finalised, a command is unavailable and leaves no trace."""
    await create_session(context)
    before = await events(eventlog)

    with pytest.raises(NotFinalised):
        await shell(context, "default", command(id="msg_s"))
    assert await events(eventlog) == before
    assert wakes(eventlog) == []
