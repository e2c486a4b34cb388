"""The inbox: list, cancel and edit pending input."""

from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.commands.input import ShellReceipt
from fairlead_schema.events import InputCancelled, InputEdited, SessionEvent
from fairlead_schema.ids import MessageId
from fairlead_schema.prompt import Delivery, Prompt, Receipt
from fairlead_session.input.admission import receipt
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session


@dataclass(frozen=True, slots=True)
class AlreadyPromoted:
    """The input is history, and history does not change: the model may have seen it."""

    message_id: MessageId
    promoted_seq: int


@dataclass(frozen=True, slots=True)
class InputNotPending:
    """The inbox does not hold the input: it was cancelled, or it never existed."""

    message_id: MessageId


InputRefusal: TypeAlias = AlreadyPromoted | InputNotPending


def pending_receipts(session: Session) -> tuple[Receipt, ...]:
    """The receipts of all pending inputs, in the order of their admission."""
    return tuple(receipt(session, item.message_id, item.prompt) for item in session.inbox.pending)


def pending_commands(session: Session) -> tuple[ShellReceipt, ...]:
    """The receipts of the commands that have not started, in the order of their admission."""
    return tuple(
        ShellReceipt(
            admitted_seq=shell.admitted_seq,
            id=shell.message_id,
            session_id=session.id,
            call_id=shell.call_id,
            command=shell.command,
            time_created=session.inbox.admissions[shell.message_id].created,
            prompt_id=shell.prompt_id,
        )
        for shell in session.inbox.shells
    )


def cancel(session: Session, message_id: MessageId) -> tuple[SessionEvent, ...] | InputRefusal:
    """Remove a pending input, or a person's command that has not started."""
    if any(shell.message_id == message_id for shell in session.inbox.shells):
        return (InputCancelled(message_id=message_id),)
    item = _find_pending(session, message_id)
    return (InputCancelled(message_id=message_id),) if isinstance(item, PendingInput) else item


def edit(
    session: Session, message_id: MessageId, *, prompt: Prompt | None, delivery: Delivery | None
) -> tuple[SessionEvent, ...] | InputRefusal:
    """Change a pending input. None keeps that part. The input keeps its place in the order."""
    item = _find_pending(session, message_id)
    if not isinstance(item, PendingInput):
        return item
    edited = InputEdited(
        message_id=message_id,
        prompt=prompt or item.prompt,
        delivery=delivery or item.delivery,
    )
    if (edited.prompt, edited.delivery) == (item.prompt, item.delivery):
        return ()
    return (edited,)


def _find_pending(session: Session, message_id: MessageId) -> PendingInput | InputRefusal:
    for item in session.inbox.pending:
        if item.message_id == message_id:
            return item
    admission = session.inbox.admissions.get(message_id)
    if admission is None or admission.promoted_seq is None:
        return InputNotPending(message_id)
    return AlreadyPromoted(message_id, admission.promoted_seq)
