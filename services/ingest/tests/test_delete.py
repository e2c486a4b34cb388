"""A purge stops the work of the session: that of its owner, and that of its child sessions."""

from collections.abc import Awaitable, Callable

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.ports import CommitPage, Head
from fairlead_eventlog.process_life import Nudge
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.people import permission
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_schema.commands.asks import AskPermission
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import SessionNotFound
from fairlead_schema.events import ExecutionClaimed, ToolCalled
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor
from fairlead_service.config.configuration import Config
from fairlead_session.calls.child_ids import TASK, child_of
from services.ingest.tests.conftest import (
    AT,
    CONFIG,
    append_events,
    create_session,
    events,
    prompt_command,
)

COMMAND = SessionCommand(session_id="ses_1")
BELOW = tuple(Address("default", child_of("ses_1", "msg_a", call_id)) for call_id in ("c1", "c2"))


async def wait_for_children(
    context: CommandContext, eventlog: EventLog, *children: Address
) -> None:
    """A session that waits for two children, of which the given ones exist and have a prompt."""
    await create_session(context)
    calls = (
        ToolCalled(
            assistant_message_id="msg_a", call_id=call_id, tool=TASK, input={}, provider=Executor()
        )
        for call_id in ("c1", "c2")
    )
    await append_events(eventlog, ExecutionClaimed(generation=1, runner="run_a"), *calls)
    for child in children:
        await create_session(context, child.session_id)
        await prompt(context, "default", prompt_command(sessionID=child.session_id))


async def event_types(eventlog: EventLog, at: Address) -> list[str]:
    return [event.type for event in await events(eventlog, at)]


async def test_a_purge_interrupts_the_sessions_below(
    context: CommandContext, eventlog: EventLog
) -> None:
    """C-12, H-29: the interrupt is immediate; a child that was never created stays absent."""
    await wait_for_children(context, eventlog, BELOW[1])

    await delete(context, "default", COMMAND)

    assert (await event_types(eventlog, AT))[-1] == "session.purged"
    assert (await event_types(eventlog, BELOW[1]))[-1] == "interrupt.requested"
    assert await event_types(eventlog, BELOW[0]) == []


async def test_its_owner_is_told(context: CommandContext, eventlog: EventLog) -> None:
    """H-29: the owner gives up its turn at once."""
    nudges: list[Nudge] = []
    await eventlog.liveness.start_answering("run_a", nudges.append)
    await wait_for_children(context, eventlog)

    await delete(context, "default", COMMAND)

    assert [nudge.at for nudge in nudges] == [AT]


async def test_a_purge_stands_although_nobody_below_can_be_told(
    context: CommandContext, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H-29: the watcher of the calls stops the children later."""
    await wait_for_children(context, eventlog, *BELOW)
    original_read: Callable[..., Awaitable[CommitPage]] = eventlog.log.read

    async def read_unless_away(
        at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        if at == BELOW[0]:
            raise LogUnavailable("away")
        return await original_read(at, after=after, limit=limit, reach=reach)

    monkeypatch.setattr(eventlog.log, "read", read_unless_away)
    await delete(context, "default", COMMAND)

    assert (await event_types(eventlog, AT))[-1] == "session.purged"
    assert (await event_types(eventlog, BELOW[1]))[-1] == "interrupt.requested"


@pytest.mark.parametrize("is_erased", [False, True], ids=["purged", "erased"])
@pytest.mark.parametrize("moment", ["approvals.get_all", "log.append"])
async def test_an_ask_never_lands_behind_the_last_word(
    eventlog: EventLog, monkeypatch: pytest.MonkeyPatch, moment: str, *, is_erased: bool
) -> None:
    """A11: another process purges after the ask was judged, or just before it is appended."""
    rule = {"action": "vcs", "resource": "*", "effect": "ask"}
    settings = IngestSettings(Config.model_validate({**CONFIG, "permissions": [rule]}))
    context, other = CommandContext(eventlog, settings), CommandContext(eventlog, settings)
    await create_session(context)
    port_name, method = moment.split(".")
    port = getattr(eventlog, port_name)
    original: Callable[..., Awaitable[object]] = getattr(port, method)

    async def purge_first(*args: object, **named: object) -> object:
        monkeypatch.undo()
        await delete(other, "default", COMMAND)
        if is_erased:
            await eventlog.log.erase(AT, before=await eventlog.log.last_commit_position(AT))
        return await original(*args, **named)

    monkeypatch.setattr(port, method, purge_first)
    ask = AskPermission(session_id="ses_1", action="vcs", resources=("git push",))
    with pytest.raises(SessionNotFound):
        await permission.ask(context, "default", ask)

    left = ["session.purged"] if is_erased else ["session.created", "session.purged"]
    assert await event_types(eventlog, AT) == left
