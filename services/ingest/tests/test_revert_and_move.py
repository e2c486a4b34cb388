"""`revert.*` and `session.move` with changes: what each writes, and what each refuses."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import NotFinalised
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.archive import archive
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_ingest.verbs.profile.move import move
from fairlead_ingest.verbs.revert.revert import clear, commit, stage
from fairlead_schema.commands.revert import StageRevert
from fairlead_schema.commands.session import MoveSession, SessionCommand
from fairlead_schema.errors import Conflict, Forbidden, MessageNotFound, SessionNotFound
from fairlead_schema.events import PromptPromoted, RevertCleared, RevertStaged
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.model import Model
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_schema.subjects import BY_HEADER, RESTRICTIONS_HEADER
from fairlead_service.rpc.caller import caller_of
from services.ingest.tests.conftest import append_events, create_command, events, prompt_command

Verb: TypeAlias = Callable[[CommandContext, str, Any], Awaitable[Model]]
SUBJECT = "fairlead.api.default.session.move"
SESSION = SessionCommand(session_id="ses_1")
STAGE = StageRevert(session_id="ses_1", message_id="msg_none")


def move_to(directory: str) -> MoveSession:
    body = {"sessionID": "ses_1", "location": {"directory": directory}, "moveChanges": True}
    return MoveSession.model_validate(body)


async def test_an_unknown_message_or_a_foreign_session_is_refused(context: CommandContext) -> None:
    """N-01: another tenant has no such session, whatever its id."""
    await create(context, "default", create_command(id="ses_1"))
    with pytest.raises(MessageNotFound):
        await stage(context, "default", STAGE)
    for tenant, verb in (("other", clear), ("other", commit)):
        with pytest.raises(SessionNotFound):
            await verb(context, tenant, SESSION)
    with pytest.raises(SessionNotFound):
        await stage(context, "other", STAGE)
    with pytest.raises(SessionNotFound):
        await move(context, "other", move_to("/there"))


async def test_without_a_staged_revert_clear_and_commit_write_nothing(
    context: CommandContext,
) -> None:
    """N-07, N-08"""
    await create(context, "default", create_command(id="ses_1"))

    assert (await clear(context, "default", SESSION)).request is None
    assert (await commit(context, "default", SESSION)).seq == 1


@pytest.mark.parametrize("message_id", ["", "nonsense", None])
def test_a_bad_message_id_is_refused(message_id: object) -> None:
    with pytest.raises(ValidationError):
        StageRevert.model_validate({"sessionID": "ses_1", "messageID": message_id})


async def test_a_move_with_changes_waits_for_the_new_level(
    context: CommandContext, eventlog: EventLog
) -> None:
    """N-17: before it is finalised nothing is written; then a repeat joins and another move waits."""
    await create(context, "default", create_command(id="ses_1"))
    with pytest.raises(NotFinalised):
        await move(context, "default", move_to("/there"))
    await eventlog.status.finalise(LEVEL_NEWEST)

    first = await move(context, "default", move_to("/there"))
    again = await move(context, "default", move_to("/there"))

    assert (first.request, again.request, again.seq) == (2, 2, 2)
    with pytest.raises(Conflict):
        await move(context, "default", move_to("/elsewhere"))


async def answered_session(context: CommandContext, eventlog: EventLog) -> None:
    """A session with one message to go back to, and a staged revert."""
    await eventlog.status.finalise(LEVEL_NEWEST)
    await create(context, "default", create_command(id="ses_1"))
    await prompt(context, "default", prompt_command(id="msg_1", resume=False))
    promoted = PromptPromoted(message_id="msg_1", prompt=Prompt(text="hello"), created=1)
    staged = RevertStaged(revert=RevertState(message_id="msg_1", files=()))
    await append_events(eventlog, promoted, staged)


VERBS = [
    pytest.param(stage, StageRevert(session_id="ses_1", message_id="msg_1"), id="stage"),
    pytest.param(clear, SESSION, id="clear"),
    pytest.param(commit, SESSION, id="commit"),
    pytest.param(move, move_to("/there"), id="move"),
]


@pytest.mark.parametrize(("verb", "command"), VERBS)
async def test_an_archived_session_changes_no_files(
    context: CommandContext, eventlog: EventLog, verb: Verb, command: SessionCommand
) -> None:
    """D16: to go back or to move with changes lets a runner work. To commit starts nothing."""
    await answered_session(context, eventlog)
    await archive(context, "default", SESSION)
    before = await events(eventlog)

    if verb is commit:
        await verb(context, "default", command)
        return
    with pytest.raises(Conflict, match="archived"):
        await verb(context, "default", command)

    assert await events(eventlog) == before


@pytest.mark.parametrize(("verb", "command"), VERBS)
async def test_nobody_reverts_or_moves_a_purged_session(
    context: CommandContext, eventlog: EventLog, verb: Verb, command: SessionCommand
) -> None:
    await answered_session(context, eventlog)
    await delete(context, "default", SESSION)

    with pytest.raises(SessionNotFound):
        await verb(context, "default", command)


@pytest.mark.parametrize(("verb", "command"), VERBS)
@pytest.mark.parametrize("restrictions", [{"roots": ["/there"]}, {"agents": ["plan"]}])
async def test_a_restricted_principal_changes_no_files_of_a_colleague(
    context: CommandContext,
    eventlog: EventLog,
    verb: Verb,
    command: SessionCommand,
    restrictions: dict[str, list[str]],
) -> None:
    """A move with changes would fetch files from a location that the caller may not use."""
    await answered_session(context, eventlog)
    if verb is move:
        await append_events(eventlog, RevertCleared())
    before = await events(eventlog)
    limits = Restrictions.model_validate(restrictions).model_dump_json(exclude_none=True)

    with (
        caller_of(SUBJECT, {BY_HEADER: "key:ci", RESTRICTIONS_HEADER: limits}),
        pytest.raises(Forbidden, match="This token may"),
    ):
        await verb(context, "default", command)

    assert await events(eventlog) == before
