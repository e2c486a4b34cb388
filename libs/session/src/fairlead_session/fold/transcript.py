"""Folds the transcript: the messages that events create and revise, and where history begins."""

from typing import Final, get_args

from fairlead_schema.events import CompactionEnded, RevertCommitted
from fairlead_schema.ids import MessageId
from fairlead_schema.message import Message, ShellMessage, SystemMessage
from fairlead_schema.record import Recorded
from fairlead_session.fold import Reducers
from fairlead_session.fold.messages import MessageEvent, revise
from fairlead_session.frozen import replace
from fairlead_session.persistent import PersistentList
from fairlead_session.state.session import Session
from fairlead_session.state.transcript import Transcript, TranscriptLine


def revert_seq(session: Session, event: RevertCommitted) -> int | None:
    """The sequence up to which messages stay; None if history does not hold the boundary."""
    return boundary_seq(session, event.message_id, before=event.before is True)


def boundary_seq(session: Session, message_id: MessageId, *, before: bool) -> int | None:
    """The sequence up to which messages stay if a session goes back to a message, or before it."""
    for line in session.transcript.lines:
        if line.message.id == message_id:
            return line.seq - 1 if before else line.seq
    return None


def _revise(session: Session, _event: MessageEvent, recorded: Recorded) -> Transcript:
    transcript = session.transcript
    for message in revise(session.id, recorded, transcript):
        transcript = _put(session, transcript, message, recorded.seq)
    return transcript


def _compact(session: Session, event: CompactionEnded, recorded: Recorded) -> Transcript:
    return _begin_at_summary(session, _revise(session, event, recorded))


def _put(session: Session, transcript: Transcript, message: Message, seq: int) -> Transcript:
    """Revise the message in its place, or append it."""
    lines, ids = transcript.lines, transcript.message_ids
    newest = lines.last
    if newest is not None and newest.message.id == message.id:
        return Transcript(lines.replace_last(TranscriptLine(newest.seq, message)), ids)
    if message.id in ids or isinstance(message, ShellMessage):
        index = len(lines)
        for line in reversed(lines):
            index -= 1
            if line.message.id == message.id:
                revised = TranscriptLine(line.seq, message)
                return Transcript(lines.replace(index, revised), ids)
    if message.id not in session.inbox.admissions:
        ids = ids.set(message.id, None)
    return Transcript(lines.append(TranscriptLine(seq, message)), ids)


def _begin_at_summary(session: Session, transcript: Transcript) -> Transcript:
    """History begins at the summary. Updates of the epoch in force stay until the epoch ends."""
    since = session.epoch.seq if session.epoch else 0
    *earlier, summary = transcript.lines
    updates = [
        line for line in earlier if isinstance(line.message, SystemMessage) and line.seq > since
    ]
    return replace(transcript, lines=PersistentList((*updates, summary)))


def _revert(session: Session, event: RevertCommitted, _recorded: Recorded) -> Transcript:
    """Later messages leave. Their ids stay taken."""
    boundary = revert_seq(session, event)
    if boundary is None:
        return session.transcript
    lines = (line for line in session.transcript.lines if line.seq <= boundary)
    return replace(session.transcript, lines=PersistentList(lines))


REDUCERS: Final[Reducers[Transcript]] = {
    **dict.fromkeys(get_args(MessageEvent), _revise),
    CompactionEnded: _compact,
    RevertCommitted: _revert,
}
