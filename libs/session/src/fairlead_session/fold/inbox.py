"""Folds the inbox: input that was admitted, changed while pending, and promoted."""

from typing import TypeAlias, assert_never

from fairlead_schema.events import (
    InputCancelled,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    RevertCommitted,
)
from fairlead_schema.ids import MessageId
from fairlead_schema.record import Recorded
from fairlead_session.fold.transcript import revert_seq
from fairlead_session.frozen import replace
from fairlead_session.input.fingerprint import fingerprint
from fairlead_session.state.inbox import AdmissionRecord, Inbox, PendingInput
from fairlead_session.state.session import Session

InboxEvent: TypeAlias = (
    PromptAdmitted | PromptPromoted | InputCancelled | InputEdited | RevertCommitted
)


def evolve(session: Session, event: InboxEvent, recorded: Recorded) -> Inbox:
    """Apply one event of the inbox."""
    inbox = session.inbox
    match event:
        case PromptAdmitted():
            return _admit(inbox, event, recorded.seq, recorded.time)
        case PromptPromoted():
            return _promote(inbox, event, recorded.seq)
        case InputCancelled(message_id=message_id):
            admission = inbox.admissions.get(message_id)
            if admission is None:
                return inbox
            cancelled = replace(admission, cancelled=True)
            return _record(_remove(inbox, message_id), message_id, cancelled)
        case InputEdited():
            return _edit(inbox, event)
        case RevertCommitted():
            boundary = revert_seq(session, event)
            if boundary is None:
                return inbox
            older = tuple(item for item in inbox.pending if item.admitted_seq <= boundary)
            return replace(inbox, pending=older)
        case _:
            assert_never(event)


def _admit(inbox: Inbox, event: PromptAdmitted, seq: int, at: int) -> Inbox:
    item = PendingInput(seq, event.message_id, event.prompt, event.delivery, at)
    admission = AdmissionRecord(seq, fingerprint(event.prompt), event.delivery, at)
    return _record(replace(inbox, pending=(*inbox.pending, item)), event.message_id, admission)


def _promote(inbox: Inbox, event: PromptPromoted, seq: int) -> Inbox:
    known = inbox.admissions.get(event.message_id)
    admission = (
        replace(known, promoted_seq=seq)
        if known
        else AdmissionRecord(seq, fingerprint(event.prompt), "steer", event.created, seq)
    )
    return _record(_remove(inbox, event.message_id), event.message_id, admission)


def _edit(inbox: Inbox, event: InputEdited) -> Inbox:
    admission = inbox.admissions.get(event.message_id)
    if admission is None:
        return inbox
    pending = tuple(
        replace(item, prompt=event.prompt, delivery=event.delivery)
        if item.message_id == event.message_id
        else item
        for item in inbox.pending
    )
    edited = replace(admission, fingerprint=fingerprint(event.prompt), delivery=event.delivery)
    return _record(replace(inbox, pending=pending), event.message_id, edited)


def _remove(inbox: Inbox, message_id: MessageId) -> Inbox:
    pending = tuple(item for item in inbox.pending if item.message_id != message_id)
    return replace(inbox, pending=pending)


def _record(inbox: Inbox, message_id: MessageId, admission: AdmissionRecord) -> Inbox:
    return replace(inbox, admissions=inbox.admissions.set(message_id, admission))
