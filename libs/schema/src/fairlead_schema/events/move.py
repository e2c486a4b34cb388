"""Events of a move that takes changes along: a request, the transfer that it begins, and how both end."""

from typing import ClassVar

from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.location import LocationRef


class MoveRequested(Event):
    """Somebody asked to move the session with its uncommitted changes. A runner does it at rest."""

    type: ClassVar[str] = "move.requested"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "notice"
    location: LocationRef


class MoveBegun(Event):
    """Files at the destination are about to change. The trees say from what to what, at both ends."""

    type: ClassVar[str] = "move.begun"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "private"
    before: str
    """The files at the destination as they were."""
    target: str
    """The files at the destination with the changes."""
    changed: str
    """The files at the source with the changes."""
    kept: str
    """The files at the source as its index has them: how they will be after the move."""
    subdirectory: str | None = None


class MoveFailed(Event):
    """The session has not moved: the reason says why, and the files are as they were at both ends."""

    type: ClassVar[str] = "move.failed"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "notice"
    reason: str


class MoveEnded(Event):
    """The session has moved. With a reason, changes stay at the source as well."""

    type: ClassVar[str] = "move.ended"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "notice"
    undiscarded: str | None = None
