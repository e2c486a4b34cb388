"""A revert under way or staged: what was asked for, and the files before and after."""

from dataclasses import dataclass

from fairlead_schema.events.revert import RevertAction
from fairlead_schema.ids import MessageId


@dataclass(frozen=True, slots=True)
class RevertRequest:
    """A request that is not done yet, with the sequence of its event."""

    seq: int
    action: RevertAction
    message_id: MessageId | None = None
    files: bool = True
    before: bool = False
    """Whether the message itself leaves too."""


@dataclass(frozen=True, slots=True)
class FileTrees:
    """The files of the location before the first stage, and as the revert makes them."""

    original: str
    target: str


@dataclass(frozen=True, slots=True)
class FailedRevert:
    """A request that changed nothing, named by its sequence."""

    seq: int
    reason: str


@dataclass(frozen=True)
class Revert:
    """The open request, the restore that it began, and the trees of the staged revert."""

    requested: RevertRequest | None = None
    begun: FileTrees | None = None
    staged: FileTrees | None = None
    staged_seq: int | None = None
    """The sequence of the request that staged the revert first. Later input is not withdrawn."""
    failed: FailedRevert | None = None
