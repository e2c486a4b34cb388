"""Encodes commits as frames of server-sent events, each event once for all clients."""

from typing import NamedTuple

from pydantic_core import to_json

from fairlead_gateway.log.envelopes import EnvelopeTranslator
from fairlead_schema.public_events import raw_event_json
from fairlead_schema.raw_records.raw_commit import RawCommit


class CommitFrames(NamedTuple):
    """The frames of one commit, joined: the public events alone, and all that clients may see."""

    public: bytes
    all: bytes


async def encode_commit(
    translator: EnvelopeTranslator, commit: RawCommit, *, after: int
) -> CommitFrames:
    """The events of a commit after a sequence, as bytes that every client can share."""
    public: list[bytes] = []
    everything: list[bytes] = []
    session_id = translator.session_id
    for raw, delivery in await translator.select(commit, after=after):
        body = raw_event_json(session_id, raw, by=raw.by, delivery=delivery)
        frame = b"id: %d\ndata: %s\n\n" % (raw.seq, to_json(body, inf_nan_mode="null"))
        everything.append(frame)
        if raw.kind.visibility == "public":
            public.append(frame)
    joined = b"".join(everything)
    return CommitFrames(joined if len(public) == len(everything) else b"".join(public), joined)
