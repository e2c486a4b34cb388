"""A staged revert, as events and readers of a session see it."""

from typing import Literal

from fairlead_schema.ids import MessageId
from fairlead_schema.model import Model


class RevertedFile(Model):
    """One file that a revert changes back."""

    path: str
    status: Literal["added", "modified", "deleted"]
    additions: int
    deletions: int
    patch: str


class RevertState(Model):
    """A staged revert: the message to go back to, and the files that change back."""

    message_id: MessageId
    before: bool | None = None
    """True: the message itself leaves too."""
    part_id: str | None = None
    snapshot: str | None = None
    diff: str | None = None
    files: tuple[RevertedFile, ...] | None = None
