"""Admission: accept one prompt and its delivery, durably, once. An exact retry gets its receipt."""

from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.events import PromptAdmitted, SessionEvent, ShellRequested
from fairlead_schema.ids import MessageId
from fairlead_schema.prompt import Delivery, Prompt, Receipt
from fairlead_session.execution.commands import SessionIsArchived, is_archived, request_work
from fairlead_session.input.fingerprint import fingerprint
from fairlead_session.input.pending_shells import pending_count
from fairlead_session.state.session import Session

PENDING_INPUTS_MAX = 1000


@dataclass(frozen=True, slots=True)
class MessageIdInUse:
    """The id belongs to another message, or to the same message with other content."""

    message_id: MessageId


@dataclass(frozen=True, slots=True)
class InboxFull:
    """The session has as many pending inputs as it may have."""

    limit: int


@dataclass(frozen=True, slots=True)
class TurnNotRunning:
    """The turn that the caller wants to steer does not run. Another turn may run."""

    expected: MessageId
    running: MessageId | None


AdmissionRefusal: TypeAlias = MessageIdInUse | TurnNotRunning | InboxFull | SessionIsArchived


def admit(  # noqa: PLR0913 - a prompt and its options
    session: Session,
    message_id: MessageId,
    prompt: Prompt,
    delivery: Delivery,
    *,
    resume: bool = True,
    expected_turn: MessageId | None = None,
    pending_max: int = PENDING_INPUTS_MAX,
    shells: tuple[ShellRequested, ...] = (),
) -> tuple[SessionEvent, ...] | AdmissionRefusal:
    """Admit a prompt whose attachments are resolved, and the commands of its templates.

    An exact retry admits nothing, even when the turn that it expected is over. With `resume` it
    asks again for work on pending input: a wake alone starts nothing after an interrupt.
    """
    admission = session.inbox.admissions.get(message_id)
    if admission is not None:
        same_delivery = admission.delivery == delivery or admission.is_bare
        equal = admission.fingerprint == fingerprint(prompt) and same_delivery
        if admission.cancelled or not equal:
            return MessageIdInUse(message_id)
        return request_work(session) if resume and not is_archived(session) else ()
    if message_id in session.transcript.message_ids:
        return MessageIdInUse(message_id)
    if is_archived(session):
        return SessionIsArchived(session.id)
    attempt = session.turn.attempt
    running = attempt.assistant_message_id if attempt else None
    if expected_turn is not None and expected_turn != running:
        return TurnNotRunning(expected_turn, running)
    if pending_count(session) >= pending_max:
        return InboxFull(pending_max)
    event = PromptAdmitted(
        message_id=message_id,
        prompt=prompt,
        delivery=delivery,
        resume=None if resume else False,
    )
    return (*shells, event)


def receipt(session: Session, message_id: MessageId, prompt: Prompt) -> Receipt:
    """The receipt of an admitted prompt. Every exact retry gets the same receipt."""
    admission = session.inbox.admissions[message_id]
    return Receipt(
        admitted_seq=admission.admitted_seq,
        id=message_id,
        session_id=session.id,
        prompt=prompt,
        delivery=admission.delivery,
        time_created=admission.created,
        promoted_seq=admission.promoted_seq,
    )
