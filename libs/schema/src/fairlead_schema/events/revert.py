"""Events of a revert: a request, the restore that it begins, and how both end."""

from typing import ClassVar, Final, Literal, TypeAlias

from typing_extensions import override

from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import MessageId
from fairlead_schema.session_values.revert_state import RevertState

BEFORE_LEVEL: Final = 3
"""The level of the log's format in which a revert may go back before a message."""

RevertAction: TypeAlias = Literal["stage", "clear"]


class RevertRequested(Event):
    """Somebody asked to stage a revert, or to clear the staged one. A runner does it at rest."""

    type: ClassVar[str] = "revert.requested"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "notice"
    action: RevertAction
    message_id: MessageId | None = None
    files: bool | None = None
    """False: only the boundary moves, and files that a revert changed go back."""
    before: bool | None = None
    """True: the message itself leaves too."""

    @property
    @override
    def needed_level(self) -> int:
        return max(self.level, _level_of(self.before))


class RevertBegun(Event):
    """Files are about to change. Whoever finds this open changes them to `target`, however far it came."""

    type: ClassVar[str] = "revert.begun"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "private"
    original: str
    """The files as they were before the first stage."""
    target: str
    """The files as they will be."""


class RevertFailed(Event):
    """The request changed nothing: the reason says why, and the files are as they were before it."""

    type: ClassVar[str] = "revert.failed"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "notice"
    reason: str


class RevertStaged(Event):
    type: ClassVar[str] = "revert.staged"
    revert: RevertState

    @property
    @override
    def needed_level(self) -> int:
        return max(self.level, _level_of(self.revert.before))


class RevertCleared(Event):
    type: ClassVar[str] = "revert.cleared"


class RevertCommitted(Event):
    type: ClassVar[str] = "revert.committed"
    message_id: MessageId
    withdrawn: tuple[MessageId, ...] | None = None
    """The pending inputs that leave with the messages. Absent: all that came after the boundary."""
    before: bool | None = None
    """True: the message itself leaves too."""

    @property
    @override
    def needed_level(self) -> int:
        return max(self.level, _level_of(self.before))


def _level_of(before: bool | None) -> int:  # noqa: FBT001 - a field of events
    return BEFORE_LEVEL if before else 1
