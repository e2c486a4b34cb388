"""A staged revert: the boundary message and the files it would change back."""

from typing import Literal

from fairlead_schema.ids import MessageId
from fairlead_schema.model import Model


class RevertedFile(Model):
    path: str
    status: Literal["added", "modified", "deleted"]
    additions: int
    deletions: int
    patch: str


class RevertState(Model):
    message_id: MessageId
    part_id: str | None = None
    snapshot: str | None = None
    diff: str | None = None
    files: tuple[RevertedFile, ...] | None = None
