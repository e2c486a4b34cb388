"""A person's own command: requested durably, once."""

from typing import TypeAlias

from fairlead_schema.events import SessionEvent, ShellRequested
from fairlead_schema.ids import CallId, MessageId
from fairlead_session.execution.commands import SessionIsArchived, is_archived
from fairlead_session.input.admission import InboxFull, MessageIdInUse
from fairlead_session.input.fingerprint import shell_fingerprint
from fairlead_session.input.pending_shells import pending_count
from fairlead_session.state.session import Session

ShellRefusal: TypeAlias = MessageIdInUse | InboxFull | SessionIsArchived


def request_shell(
    session: Session,
    message_id: MessageId,
    call_id: CallId,
    command: str,
    agent: str,
    *,
    pending_max: int,
) -> tuple[SessionEvent, ...] | ShellRefusal:
    """Ask for a command, once. An exact retry writes nothing, even if the command has ended.

    The id of a cancelled command is not used again.
    """
    admission = session.inbox.admissions.get(message_id)
    if admission is not None:
        is_same = admission.fingerprint == shell_fingerprint(command)
        return () if is_same and not admission.cancelled else MessageIdInUse(message_id)
    if message_id in session.transcript.message_ids:
        return MessageIdInUse(message_id)
    if is_archived(session):
        return SessionIsArchived(session.id)
    if pending_count(session) >= pending_max:
        return InboxFull(pending_max)
    return (ShellRequested(message_id=message_id, call_id=call_id, command=command, agent=agent),)
