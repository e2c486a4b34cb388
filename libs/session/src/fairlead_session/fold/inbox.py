"""Folds the inbox: what was admitted, changed while pending, and promoted."""

from typing import TypeAlias, assert_never

from fairlead_schema.events import InputCancelled, InputEdited, PromptAdmitted, PromptPromoted
from fairlead_schema.ids import MessageId
from fairlead_session.frozen import replace
from fairlead_session.input.fingerprint import fingerprint
from fairlead_session.state import AdmissionRecord, PendingInput, Session

InboxEvent: TypeAlias = PromptAdmitted | PromptPromoted | InputCancelled | InputEdited


def evolve(session: Session, event: InboxEvent, seq: int, at: int) -> Session:
    """Apply one event of the inbox."""
    match event:
        case PromptAdmitted():
            return _admitted(session, event, seq, at)
        case PromptPromoted(message_id=message_id):
            known = session.admissions.get(message_id)
            entry = (
                replace(known, promoted_seq=seq)
                if known
                else AdmissionRecord(seq, fingerprint(event.prompt), "steer", event.created, seq)
            )
            promoted = replace(
                session, owed=True, step=0, rested=None, retries=0, repeats=0, held=False
            )
            return _remembered(_without(promoted, message_id), message_id, entry)
        case InputCancelled(message_id=message_id):
            known = session.admissions.get(message_id)
            if known is None:
                return session
            cancelled = replace(known, cancelled=True)
            return _remembered(_without(session, message_id), message_id, cancelled)
        case InputEdited():
            return _edited(session, event)
        case _:
            assert_never(event)


def _admitted(session: Session, event: PromptAdmitted, seq: int, at: int) -> Session:
    item = PendingInput(seq, event.message_id, event.prompt, event.delivery, at)
    entry = AdmissionRecord(seq, fingerprint(event.prompt), event.delivery, at)
    admitted = replace(session, inbox=(*session.inbox, item))
    if event.resume is not False:
        admitted = replace(admitted, stirring=True, stirred_seq=seq, failure=None)
    return _remembered(admitted, event.message_id, entry)


def _edited(session: Session, event: InputEdited) -> Session:
    inbox = tuple(
        replace(item, prompt=event.prompt, delivery=event.delivery)
        if item.message_id == event.message_id
        else item
        for item in session.inbox
    )
    known = session.admissions.get(event.message_id)
    if known is None:
        return session
    entry = replace(known, fingerprint=fingerprint(event.prompt), delivery=event.delivery)
    return _remembered(replace(session, inbox=inbox), event.message_id, entry)


def _without(session: Session, message_id: MessageId) -> Session:
    inbox = tuple(item for item in session.inbox if item.message_id != message_id)
    return replace(session, inbox=inbox)


def _remembered(session: Session, message_id: MessageId, entry: AdmissionRecord) -> Session:
    return replace(session, admissions={**session.admissions, message_id: entry})
