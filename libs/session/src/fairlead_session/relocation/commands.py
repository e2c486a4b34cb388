"""The command to move a session: at once, or with its changes by a runner."""

from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.events import MoveRequested, SessionEvent, SessionMoved
from fairlead_schema.location import LocationRef
from fairlead_session.execution.commands import SessionIsArchived, is_archived, stop_running_work
from fairlead_session.state.session import Session

Events: TypeAlias = tuple[SessionEvent, ...]


@dataclass(frozen=True, slots=True)
class RevertOpen:
    """A revert is staged or under way at the old location: its files must be settled first."""


@dataclass(frozen=True, slots=True)
class MoveUnderWay:
    """Another move is not done yet: its changes are on their way, or still at the source."""


MoveRefusal: TypeAlias = RevertOpen | MoveUnderWay | SessionIsArchived


def move(
    session: Session, location: LocationRef, *, with_changes: bool = False
) -> Events | MoveRefusal:
    """Work in another location, and stop the work at the old one. The same directory is no move.

    A move with changes is only asked for here. The same request again joins the first one.
    """
    if with_changes and is_archived(session):
        return SessionIsArchived(session.id)
    request = session.relocation.requested
    if request is not None:
        same = with_changes and request.location.directory == location.directory
        return () if same else MoveUnderWay()
    if session.profile is None or session.profile.location.directory == location.directory:
        return ()
    if session.profile.revert is not None or session.revert.requested is not None:
        return RevertOpen()
    moved = MoveRequested(location=location) if with_changes else SessionMoved(location=location)
    return (*stop_running_work(session), moved)
