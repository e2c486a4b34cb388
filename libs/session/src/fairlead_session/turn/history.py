"""Session history: what the next provider turn sees, after the compaction and epoch cutoffs."""

from fairlead_schema.message import CompactionMessage, Message, SystemMessage
from fairlead_session.state.session import Session
from fairlead_session.state.transcript import TranscriptLine


def history(session: Session) -> tuple[Message, ...]:
    """From the newest compaction on; of system messages only those of the epoch in force."""
    return tuple(line.message for line in lines(session))


def lines(session: Session) -> tuple[TranscriptLine, ...]:
    """The same with the sequences of what created each message."""
    newest = compacted_seq(session) or 0
    since = session.epoch.seq if session.epoch else 0
    return tuple(
        line
        for line in session.transcript.lines
        if line.seq > (since if isinstance(line.message, SystemMessage) else newest - 1)
    )


def compacted_seq(session: Session) -> int | None:
    """The sequence of the newest compaction, if there is one."""
    return next(
        (
            line.seq
            for line in reversed(session.transcript.lines)
            if isinstance(line.message, CompactionMessage)
        ),
        None,
    )
