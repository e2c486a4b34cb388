"""Events of the context epoch: its baseline, its snapshot, and every admitted change."""

from typing import ClassVar

from fairlead_schema.context import BaselinePart, SnapshotEntry, SourceKey
from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import MessageId


class ContextInitialised(Event):
    """A new epoch begins. Its baseline does not change until the epoch ends."""

    type: ClassVar[str] = "context.initialised"
    visibility: ClassVar[Visibility] = "private"
    baseline: tuple[BaselinePart, ...]
    snapshot: dict[SourceKey, SnapshotEntry]


class ContextReplaced(Event):
    """An incompatible change or a compaction ended the epoch and began the next one."""

    type: ClassVar[str] = "context.replaced"
    visibility: ClassVar[Visibility] = "private"
    baseline: tuple[BaselinePart, ...]
    snapshot: dict[SourceKey, SnapshotEntry]
    reason: str


class ContextPruned(Event):
    """Later requests send large tool outputs up to this seq as references only."""

    type: ClassVar[str] = "context.pruned"
    visibility: ClassVar[Visibility] = "private"
    through_seq: int
    over_bytes: int
    hosted: bool | None = None
    """True: results of hosted tools too, where their protocol allows it."""


class ContextUpdated(Event):
    """The changes since the last context message, as one chronological system message."""

    type: ClassVar[str] = "context.updated"
    message_id: MessageId
    text: str


class ContextSnapshotAdvanced(Event):
    """The new context snapshot after an update, in the same commit as the update's message."""

    type: ClassVar[str] = "context.advanced"
    visibility: ClassVar[Visibility] = "private"
    snapshot: dict[SourceKey, SnapshotEntry]
