"""Admission: accept one prompt and its delivery, durably, once. An exact retry gets its receipt."""

from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.events import PromptAdmitted
from fairlead_schema.ids import MessageId
from fairlead_schema.prompt import Delivery, Prompt, Receipt
from fairlead_session.input.fingerprint import fingerprint
from fairlead_session.state.inbox import AdmissionRecord
from fairlead_session.state.session import Session

PENDING_INPUTS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Admit:
    """Write this, and the input is admitted."""

    event: PromptAdmitted


@dataclass(frozen=True, slots=True)
class AlreadyAdmitted:
    """An exact retry: nothing to write, the receipt is the stored one."""

    receipt: Receipt


@dataclass(frozen=True, slots=True)
class MessageIdInUse:
    """The id belongs to something else."""

    message_id: MessageId


@dataclass(frozen=True, slots=True)
class InboxFull:
    """More input is pending than a session may hold."""

    limit: int


@dataclass(frozen=True, slots=True)
class TurnNotRunning:
    """The turn that the caller wants to steer does not run; perhaps another does."""

    expected: MessageId
    running: MessageId | None


Admission: TypeAlias = Admit | AlreadyAdmitted | MessageIdInUse | TurnNotRunning | InboxFull


def admit(  # noqa: PLR0913 - a prompt and the ways to qualify it
    session: Session,
    message_id: MessageId,
    prompt: Prompt,
    delivery: Delivery,
    *,
    resume: bool = True,
    expected_turn: MessageId | None = None,
    pending_max: int = PENDING_INPUTS_MAX,
) -> Admission:
    """Decide what admitting this prompt means. The prompt is resolved; time is not compared.

    An exact retry gets its receipt even when the turn it expected is over.
    """
    known = session.inbox.admissions.get(message_id)
    if known is not None:
        return _again(session, message_id, prompt, delivery, known)
    if message_id in session.transcript.message_ids:
        return MessageIdInUse(message_id)
    attempt = session.turn.attempt
    running = attempt.assistant_message_id if attempt else None
    if expected_turn is not None and expected_turn != running:
        return TurnNotRunning(expected_turn, running)
    if len(session.inbox.pending) >= pending_max:
        return InboxFull(pending_max)
    return Admit(
        PromptAdmitted(
            message_id=message_id,
            prompt=prompt,
            delivery=delivery,
            resume=None if resume else False,
        )
    )


def receipt(
    session: Session, message_id: MessageId, prompt: Prompt, known: AdmissionRecord
) -> Receipt:
    """What admission returns, and returns again."""
    return Receipt(
        admitted_seq=known.admitted_seq,
        id=message_id,
        session_id=session.id,
        prompt=prompt,
        delivery=known.delivery,
        time_created=known.created,
        promoted_seq=known.promoted_seq,
    )


def _again(
    session: Session,
    message_id: MessageId,
    prompt: Prompt,
    delivery: Delivery,
    known: AdmissionRecord,
) -> AlreadyAdmitted | MessageIdInUse:
    same = known.fingerprint == fingerprint(prompt) and known.delivery == delivery
    if known.cancelled or not same:
        return MessageIdInUse(message_id)
    return AlreadyAdmitted(receipt(session, message_id, prompt, known))
