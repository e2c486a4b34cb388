"""Session history: the messages of the next request, after the compaction and epoch cutoffs."""

from typing import NamedTuple

from fairlead_schema.message import Message, SystemMessage
from fairlead_session.state.session import Session
from fairlead_session.state.transcript import TranscriptLine


class HistoryStart(NamedTuple):
    """Where history begins: at the newest compaction, and after the start of the epoch for updates."""

    compacted_seq: int
    epoch_seq: int

    def includes(self, line: TranscriptLine) -> bool:
        """Whether a line of the transcript belongs to history."""
        if isinstance(line.message, SystemMessage):
            return line.seq > self.epoch_seq
        return line.seq >= self.compacted_seq


def history_start(session: Session) -> HistoryStart:
    """Where the history of the next request begins."""
    epoch_seq = session.epoch.seq if session.epoch else 0
    return HistoryStart(session.transcript.compacted_seq or 0, epoch_seq)


def history(session: Session) -> tuple[Message, ...]:
    """All messages since the newest compaction. System messages only of the current epoch."""
    return tuple(line.message for line in lines(session))


def lines(session: Session) -> tuple[TranscriptLine, ...]:
    """The same messages, each with the sequence of the event that created it."""
    return tuple(filter(history_start(session).includes, session.transcript.lines))
