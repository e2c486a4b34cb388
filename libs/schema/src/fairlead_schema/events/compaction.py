"""Events of compaction. A start without an end leaves the history unchanged."""

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
    """The compaction made no summary. The history is unchanged and the request is withdrawn."""

    type: ClassVar[str] = "compaction.failed"
    visibility: ClassVar[Visibility] = "notice"
    message_id: MessageId | None = None
    reason: CompactionReason
    outcome: Literal["nothing", "refused", "failed"]
    """`nothing`: no history to replace. `refused`: impossible to try. `failed`: tried in vain."""
    message: str


class CompactionUsed(Event):
    """The usage of a summary request, failed or not. It counts like the usage of a turn."""

    type: ClassVar[str] = "compaction.used"
    visibility: ClassVar[Visibility] = "notice"
    message_id: MessageId
    model: ModelRef
    cost: float
    tokens: Tokens
