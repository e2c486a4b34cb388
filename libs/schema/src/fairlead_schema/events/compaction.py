"""Events of compaction. A start without an end changes nothing."""

from typing import ClassVar, Literal, TypeAlias

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import MessageId

CompactionReason: TypeAlias = Literal["auto", "manual"]


class CompactionRequested(Event):
    type: ClassVar[str] = "compaction.requested"
    visibility: ClassVar[Visibility] = "notice"


class CompactionStarted(Event):
    type: ClassVar[str] = "compaction.started"
    message_id: MessageId
    reason: CompactionReason


class CompactionEnded(Event):
    type: ClassVar[str] = "compaction.ended"
    message_id: MessageId
    reason: CompactionReason
    text: str
    recent: str


class CompactionFailed(Event):
    """No summary came of it, and history is as it was. What was asked for is not asked any more."""

    type: ClassVar[str] = "compaction.failed"
    visibility: ClassVar[Visibility] = "notice"
    message_id: MessageId | None = None
    reason: CompactionReason
    outcome: Literal["nothing", "refused", "failed"]
    """There was nothing to replace; it could not be tried; or it was tried in vain."""
    message: str


class CompactionUsed(Event):
    """What a summary took, whatever came of it; it counts like a turn."""

    type: ClassVar[str] = "compaction.used"
    visibility: ClassVar[Visibility] = "notice"
    message_id: MessageId
    model: ModelRef
    cost: float
    tokens: Tokens
