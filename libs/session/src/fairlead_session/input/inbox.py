"""The inbox, before promotion: list what is pending, withdraw it, change it."""

from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.events import InputCancelled, InputEdited
from fairlead_schema.ids import MessageId
from fairlead_schema.prompt import Delivery, Prompt, Receipt
from fairlead_session.input.admission import receipt
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session


@dataclass(frozen=True, slots=True)
class AlreadyPromoted:
    """The model may have seen it: it is history now, and history does not change."""

    message_id: MessageId
    promoted_seq: int


@dataclass(frozen=True, slots=True)
class InputNotPending:
    """The inbox holds no such input: it never did, or it was withdrawn."""

    message_id: MessageId


@dataclass(frozen=True, slots=True)
class InputUnchanged:
    """The input is already as it should be."""

    message_id: MessageId


Cancellation: TypeAlias = InputCancelled | AlreadyPromoted | InputNotPending
Edit: TypeAlias = InputEdited | InputUnchanged | AlreadyPromoted | InputNotPending


def pending(session: Session) -> tuple[Receipt, ...]:
    """The receipts of all pending inputs, in the order of their admission."""
    return tuple(
        receipt(session, item.message_id, item.prompt, session.inbox.admissions[item.message_id])
        for item in session.inbox.pending
    )


def cancel(session: Session, message_id: MessageId) -> Cancellation:
    """Decide what withdrawing an input means."""
    found = _found(session, message_id)
    return InputCancelled(message_id=message_id) if isinstance(found, PendingInput) else found


def edit(
    session: Session, message_id: MessageId, *, prompt: Prompt | None, delivery: Delivery | None
) -> Edit:
    """Decide what changing an input means; None leaves that part as it is. Its place stays."""
    found = _found(session, message_id)
    if not isinstance(found, PendingInput):
        return found
    edited = InputEdited(
        message_id=message_id,
        prompt=prompt or found.prompt,
        delivery=delivery or found.delivery,
    )
    if (edited.prompt, edited.delivery) == (found.prompt, found.delivery):
        return InputUnchanged(message_id)
    return edited


def _found(
    session: Session, message_id: MessageId
) -> PendingInput | AlreadyPromoted | InputNotPending:
    found = next((item for item in session.inbox.pending if item.message_id == message_id), None)
    if found is not None:
        return found
    known = session.inbox.admissions.get(message_id)
    if known is None or known.promoted_seq is None:
        return InputNotPending(message_id)
    return AlreadyPromoted(message_id, known.promoted_seq)
