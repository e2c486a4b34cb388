"""The messages of a session since its last compaction."""

from dataclasses import dataclass, field
from typing import NamedTuple

from immutables import Map

from fairlead_schema.ids import MessageId
from fairlead_schema.message import AssistantMessage, CompactionMessage, Message, SystemMessage
from fairlead_session.persistent import PersistentList, PersistentMap


class TranscriptLine(NamedTuple):
    """One message of the transcript, with the sequence of the event that created it."""

    seq: int
    message: Message


@dataclass(frozen=True)
class Transcript:
    """The messages of the session since its last compaction.

    `message_ids` holds the id of every message that no admission created, also of those that
    compaction removed: no prompt may use such an id.
    """

    lines: PersistentList[TranscriptLine] = field(default_factory=PersistentList)
    message_ids: PersistentMap[MessageId, None] = field(default_factory=Map)

    @property
    def compacted_seq(self) -> int | None:
        """The sequence of the newest compaction, if there is one. History begins there.

        A compaction leaves nothing before its summary but system messages.
        """
        for line in self.lines:
            if isinstance(line.message, CompactionMessage):
                return line.seq
            if not isinstance(line.message, SystemMessage):
                return None
        return None

    def find(self, message_id: MessageId) -> Message | None:
        """The message with this id. The search begins with the newest message."""
        newest = self.lines.last
        if newest is not None and newest.message.id == message_id:
            return newest.message
        for line in reversed(self.lines):
            if line.message.id == message_id:
                return line.message
        return None

    def open_assistant(self) -> AssistantMessage | None:
        """The newest assistant message, if no step has completed it."""
        newest = self.newest_assistant()
        return newest if newest is not None and newest.time.completed is None else None

    def newest_assistant(self) -> AssistantMessage | None:
        """The newest assistant message since the last compaction."""
        for line in reversed(self.lines):
            if isinstance(line.message, AssistantMessage):
                return line.message
        return None
