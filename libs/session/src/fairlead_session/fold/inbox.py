"""Folds the inbox: input that was admitted, changed while pending, and promoted."""

from typing import Final

from fairlead_schema.events import (
    InputCancelled,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    RevertCommitted,
    ShellRequested,
    ShellStarted,
)
from fairlead_schema.ids import MessageId
from fairlead_schema.record import Recorded
from fairlead_session.fold import Reducers
from fairlead_session.fold.transcript import revert_seq
from fairlead_session.frozen import replace
from fairlead_session.input.fingerprint import fingerprint, shell_fingerprint
from fairlead_session.state.inbox import AdmissionRecord, Inbox, PendingInput, PendingShell
from fairlead_session.state.session import Session


def _admit(session: Session, event: PromptAdmitted, recorded: Recorded) -> Inbox:
    inbox, seq, at = session.inbox, recorded.seq, recorded.time
    item = PendingInput(seq, event.message_id, event.prompt, event.delivery, at)
    admission = AdmissionRecord(seq, fingerprint(event.prompt), event.delivery, at)
    admissions = inbox.admissions.set(event.message_id, admission)
    return replace(inbox, pending=(*inbox.pending, item), admissions=admissions)


def _request_shell(session: Session, event: ShellRequested, recorded: Recorded) -> Inbox:
    inbox, seq = session.inbox, recorded.seq
    shell = PendingShell(
        seq, event.message_id, event.call_id, event.command, event.agent, event.prompt_id
    )
    admission = AdmissionRecord(seq, shell_fingerprint(event.command), "steer", recorded.time)
    admissions = inbox.admissions.set(event.message_id, admission)
    return replace(inbox, shells=(*inbox.shells, shell), admissions=admissions)


def _start_shell(session: Session, event: ShellStarted, recorded: Recorded) -> Inbox:
    inbox = session.inbox
    known = inbox.admissions.get(event.message_id)
    if known is None:
        return inbox
    shells = tuple(shell for shell in inbox.shells if shell.message_id != event.message_id)
    admission = replace(known, promoted_seq=recorded.seq)
    return replace(
        inbox, shells=shells, admissions=inbox.admissions.set(event.message_id, admission)
    )


def _promote(session: Session, event: PromptPromoted, recorded: Recorded) -> Inbox:
    inbox, seq = session.inbox, recorded.seq
    known = inbox.admissions.get(event.message_id)
    admission = (
        replace(known, promoted_seq=seq)
        if known
        else AdmissionRecord(seq, fingerprint(event.prompt), "steer", event.created, seq)
    )
    return _settle(inbox, event.message_id, admission)


def _cancel(session: Session, event: InputCancelled, _recorded: Recorded) -> Inbox:
    admission = session.inbox.admissions.get(event.message_id)
    if admission is None:
        return session.inbox
    # The commands of a cancelled prompt have no more reason to run.
    shells = tuple(
        shell
        for shell in session.inbox.shells
        if event.message_id not in {shell.message_id, shell.prompt_id}
    )
    inbox = replace(session.inbox, shells=shells)
    return _settle(inbox, event.message_id, replace(admission, cancelled=True))


def _edit(session: Session, event: InputEdited, _recorded: Recorded) -> Inbox:
    inbox = session.inbox
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
    admissions = inbox.admissions.set(event.message_id, edited)
    shells = tuple(shell for shell in inbox.shells if not _is_withdrawn(shell, event))
    return replace(inbox, pending=pending, admissions=admissions, shells=shells)


def _is_withdrawn(shell: PendingShell, event: InputEdited) -> bool:
    """Whether an edit took the command out of its prompt: the text does not name it any more."""
    return shell.prompt_id == event.message_id and f"`{shell.command}`" not in event.prompt.text


def _revert(session: Session, event: RevertCommitted, recorded: Recorded) -> Inbox:
    """Input that was admitted after the boundary leaves with the messages, unless it came after the stage."""
    inbox, boundary = session.inbox, revert_seq(session, event)
    if boundary is None:
        return inbox
    if event.withdrawn is None:
        older = tuple(item for item in inbox.pending if item.admitted_seq <= boundary)
        shells = tuple(shell for shell in inbox.shells if shell.admitted_seq <= boundary)
        return replace(inbox, pending=older, shells=shells)
    staged_seq = session.revert.staged_seq or recorded.seq
    left = tuple(item for item in inbox.pending if item.message_id not in event.withdrawn)
    shells = tuple(
        shell for shell in inbox.shells if not boundary < shell.admitted_seq < staged_seq
    )
    return replace(inbox, pending=left, shells=shells)


def _settle(inbox: Inbox, message_id: MessageId, admission: AdmissionRecord) -> Inbox:
    pending = tuple(item for item in inbox.pending if item.message_id != message_id)
    return replace(inbox, pending=pending, admissions=inbox.admissions.set(message_id, admission))


REDUCERS: Final[Reducers[Inbox]] = {
    PromptAdmitted: _admit,
    PromptPromoted: _promote,
    InputCancelled: _cancel,
    InputEdited: _edit,
    RevertCommitted: _revert,
    ShellRequested: _request_shell,
    ShellStarted: _start_shell,
}
