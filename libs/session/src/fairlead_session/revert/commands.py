"""Commands of a revert: stage, clear and commit. What they change in files, a runner does later."""

from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.events import RevertCommitted, RevertRequested, SessionEvent
from fairlead_schema.ids import MessageId
from fairlead_session.execution.commands import SessionIsArchived, interrupt, is_archived
from fairlead_session.revert.plan import boundary_seq
from fairlead_session.state.session import Session

Events: TypeAlias = tuple[SessionEvent, ...]


@dataclass(frozen=True, slots=True)
class BoundaryUnknown:
    """The session has no such message."""

    message_id: MessageId


@dataclass(frozen=True, slots=True)
class BoundaryCompacted:
    """A summary has replaced the message, so nobody can go back to it."""

    message_id: MessageId


@dataclass(frozen=True, slots=True)
class RevertUnderWay:
    """Another revert or a move with changes is not done yet."""


ClearRefusal: TypeAlias = RevertUnderWay | SessionIsArchived
StageRefusal: TypeAlias = BoundaryUnknown | BoundaryCompacted | ClearRefusal


def stage(session: Session, message_id: MessageId, *, files: bool = True) -> Events | StageRefusal:
    """Stop the work, then go back to a message. The same request again joins the first one."""
    if is_archived(session):
        return SessionIsArchived(session.id)
    open_request = session.revert.requested
    if session.relocation.requested is not None:
        return RevertUnderWay()
    if open_request is not None:
        asked = (open_request.action, open_request.message_id, open_request.files)
        return () if asked == ("stage", message_id, files) else RevertUnderWay()
    if boundary_seq(session, message_id) is None:
        known = message_id in session.transcript.message_ids or _was_promoted(session, message_id)
        return BoundaryCompacted(message_id) if known else BoundaryUnknown(message_id)
    request = RevertRequested(action="stage", message_id=message_id, files=None if files else False)
    return (*interrupt(session), request)


def clear(session: Session) -> Events | ClearRefusal:
    """Undo the staged revert. Without one there is nothing to do."""
    if is_archived(session):
        return SessionIsArchived(session.id)
    open_request = session.revert.requested
    if open_request is not None:
        return () if open_request.action == "clear" else RevertUnderWay()
    if session.profile is None or session.profile.revert is None:
        return ()
    return (*interrupt(session), RevertRequested(action="clear"))


def commit(session: Session) -> Events | RevertUnderWay:
    """Remove what came after the boundary, for ever. Without a staged revert there is nothing to do."""
    return RevertUnderWay() if session.revert.requested is not None else commit_staged(session)


def commit_staged(session: Session) -> Events:
    """The event that commits the staged revert. Input that came after the stage stays pending."""
    if session.profile is None or session.profile.revert is None:
        return ()
    message_id = session.profile.revert.message_id
    boundary = boundary_seq(session, message_id) or session.seq
    until = session.seq if session.revert.staged_seq is None else session.revert.staged_seq
    withdrawn = tuple(
        item.message_id for item in session.inbox.pending if boundary < item.admitted_seq < until
    )
    return (RevertCommitted(message_id=message_id, withdrawn=withdrawn),)


def _was_promoted(session: Session, message_id: MessageId) -> bool:
    admission = session.inbox.admissions.get(message_id)
    return admission is not None and admission.promoted_seq is not None
