"""`revert.*` and `session.move` with changes: what each writes, and what each refuses."""

import pytest
from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import NotFinalised
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.profile.move import move
from fairlead_ingest.verbs.revert.revert import clear, commit, stage
from fairlead_schema.commands.revert import StageRevert
from fairlead_schema.commands.session import MoveSession, SessionCommand
from fairlead_schema.errors import Conflict, MessageNotFound, SessionNotFound
from fairlead_schema.record import LEVEL_NEWEST
from services.ingest.tests.conftest import create_command

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
