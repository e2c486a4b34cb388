"""Commands of a revert: stage, clear and commit. What they change in files, a runner does later."""

from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.events import RevertCommitted, RevertRequested, SessionEvent
from fairlead_schema.ids import MessageId
from fairlead_schema.message import CompactionMessage
from fairlead_session.execution.commands import SessionIsArchived, interrupt, is_archived
from fairlead_session.fold.transcript import boundary_seq
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


def stage(
    session: Session, message_id: MessageId, *, files: bool = True, before: bool = False
) -> Events | StageRefusal:
    """Stop the work, then go back to a message, or before it. The same request again joins the first one."""
    if is_archived(session):
        return SessionIsArchived(session.id)
    open_request = session.revert.requested
    if session.relocation.requested is not None:
        return RevertUnderWay()
    if open_request is not None:
        asked = (open_request.action, open_request.message_id)
        same = asked == ("stage", message_id) and (open_request.files, open_request.before) == (
            files,
            before,
        )
        return () if same else RevertUnderWay()
    if boundary_seq(session, message_id, before=before) is None:
        known = message_id in session.transcript.message_ids or _was_promoted(session, message_id)
        return BoundaryCompacted(message_id) if known else BoundaryUnknown(message_id)
    if before and isinstance(session.transcript.find(message_id), CompactionMessage):
        return BoundaryCompacted(message_id)
    request = RevertRequested(
        action="stage",
        message_id=message_id,
        files=None if files else False,
        before=before or None,
    )
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
    message_id, before = session.profile.revert.message_id, session.profile.revert.before
    boundary = boundary_seq(session, message_id, before=before is True) or session.seq
    until = session.seq if session.revert.staged_seq is None else session.revert.staged_seq
    withdrawn = tuple(
        item.message_id for item in session.inbox.pending if boundary < item.admitted_seq < until
    )
    return (RevertCommitted(message_id=message_id, withdrawn=withdrawn, before=before),)


def _was_promoted(session: Session, message_id: MessageId) -> bool:
    admission = session.inbox.admissions.get(message_id)
    return admission is not None and admission.promoted_seq is not None
