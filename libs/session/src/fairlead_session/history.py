"""Session history: what the next provider turn sees, after the compaction and epoch cutoffs."""

from fairlead_schema.message import CompactionMessage, Message, SystemMessage
from fairlead_session.state import Session


def history(session: Session) -> tuple[Message, ...]:
    """From the newest compaction on; of system messages only those of the epoch in force."""
    lines = session.transcript
    newest = next(
        (
            index
            for index in range(len(lines) - 1, -1, -1)
            if isinstance(lines[index].message, CompactionMessage)
        ),
        0,
    )
    since = session.epoch.seq if session.epoch else 0
    return tuple(
        line.message
        for index, line in enumerate(lines)
        if _visible(line.seq, line.message, index >= newest, since)
    )


def _visible(seq: int, message: Message, active: bool, since: int) -> bool:  # noqa: FBT001
    return seq > since if isinstance(message, SystemMessage) else active
