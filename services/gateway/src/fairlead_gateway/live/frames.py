"""Encodes commits as frames of server-sent events, each event once for all clients."""

from typing import NamedTuple

from pydantic_core import to_json

from fairlead_eventlog.ports import StoredCommit
from fairlead_gateway.log.envelopes import EnvelopeTranslator, VisibleEvent
from fairlead_schema.ids import SessionId
from fairlead_schema.public_events import public_event_json


class CommitFrames(NamedTuple):
    """The frames of one commit, joined: the public events alone, and all that clients may see."""

    public: bytes
    all: bytes


async def encode_commit(
    translator: EnvelopeTranslator, stored: StoredCommit, *, after: int
) -> CommitFrames:
    """The events of a commit after a sequence, as bytes that every client can share."""
    events = await translator.select(stored, after=after)
    frames = [
        (item.recorded.event.visibility, _frame(translator.session_id, item)) for item in events
    ]
    everything = b"".join(frame for _, frame in frames)
    if all(visibility == "public" for visibility, _ in frames):
        return CommitFrames(everything, everything)
    public = b"".join(frame for visibility, frame in frames if visibility == "public")
    return CommitFrames(public, everything)


def _frame(session_id: SessionId, item: VisibleEvent) -> bytes:
    body = public_event_json(session_id, item.recorded, delivery=item.delivery)
    data = to_json(body, inf_nan_mode="null")
    return b"id: %d\ndata: %s\n\n" % (item.recorded.seq, data)
