"""Events of compaction. A start without an end changes nothing."""

from typing import ClassVar, Literal

from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import MessageId


class CompactionRequested(Event):
    type: ClassVar[str] = "compaction.requested"
    visibility: ClassVar[Visibility] = "notice"


class CompactionStarted(Event):
    type: ClassVar[str] = "compaction.started"
    message_id: MessageId
    reason: Literal["auto", "manual"]


class CompactionEnded(Event):
    type: ClassVar[str] = "compaction.ended"
    message_id: MessageId
    reason: Literal["auto", "manual"]
    text: str
    recent: str
