"""Session history: the messages of the next request, after the compaction and epoch cutoffs."""

from fairlead_schema.message import Message, SystemMessage
from fairlead_session.state.session import Session
from fairlead_session.state.transcript import TranscriptLine


def history(session: Session) -> tuple[Message, ...]:
    """All messages since the newest compaction. System messages only of the current epoch."""
    return tuple(line.message for line in lines(session))


def lines(session: Session) -> tuple[TranscriptLine, ...]:
    """The same messages, each with the sequence of the event that created it."""
    newest = session.transcript.compacted_seq or 0
    since = session.epoch.seq if session.epoch else 0
    return tuple(
        line
        for line in session.transcript.lines
        if line.seq > (since if isinstance(line.message, SystemMessage) else newest - 1)
    )
