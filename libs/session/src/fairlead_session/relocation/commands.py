"""The command to move a session: at once, or with its changes by a runner."""

from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.events import MoveRequested, ResumeRequested, SessionEvent, SessionMoved
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


@dataclass(frozen=True, slots=True)
class OtherPool:
    """Changes cannot come along: no worker sees the disks of both pools."""


@dataclass(frozen=True, slots=True)
class SessionIsBusy:
    """A turn or a call is open, and the move shall interrupt nothing."""


MoveRefusal: TypeAlias = RevertOpen | MoveUnderWay | OtherPool | SessionIsBusy | SessionIsArchived


def move(
    session: Session,
    location: LocationRef,
    *,
    pool: str | None = None,
    with_changes: bool = False,
    at_rest: bool = False,
    resume: bool = False,
) -> Events | MoveRefusal:
    """Work in another location or pool, and stop the work at the old one. The same place is no move.

    The workers of `pool` serve the location; None is the default pool. A move with changes is only
    asked for here, and the same request again joins the first one. A move `at_rest` interrupts
    nothing: it is refused while something is open. With `resume` the work that it stops goes on at
    the new place; a session that nobody asked to work stays at rest.
    """
    if with_changes and is_archived(session):
        return SessionIsArchived(session.id)
    request = session.relocation.requested
    if request is not None:
        same = with_changes and request.location.directory == location.directory
        return () if same else MoveUnderWay()
    profile = session.profile
    if profile is None:
        return ()
    same_pool, same_place = profile.pool == pool, profile.location.directory == location.directory
    if same_place and same_pool:
        return ()
    if with_changes and not same_pool:
        return OtherPool()
    if profile.revert is not None or session.revert.requested is not None:
        return RevertOpen()
    stopping = stop_running_work(session)
    if at_rest and (stopping or session.execution.interrupted):
        return SessionIsBusy()
    resumed = (ResumeRequested(),) if resume and stopping else ()
    if with_changes:
        return (*stopping, MoveRequested(location=location), *resumed)
    subdirectory = profile.subpath if same_place else None
    moved = SessionMoved(location=location, subdirectory=subdirectory, pool=pool)
    return (*stopping, moved, *resumed)
