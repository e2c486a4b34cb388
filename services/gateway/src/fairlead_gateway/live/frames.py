"""Encodes commits as frames of server-sent events, each event once for all clients."""

from typing import Final, NamedTuple

from pydantic_core import to_json

from fairlead_gateway.log.envelopes import EnvelopeTranslator
from fairlead_schema.public_events import raw_event_json
from fairlead_schema.raw_records.raw_commit import RawCommit
from fairlead_schema.raw_records.raw_decoder import decode_raw
from fairlead_schema.record import decode

_IMPORTED: Final = b'"imported"'


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


async def encode_live_commit(translator: EnvelopeTranslator, payload: bytes) -> bytes:
    """The visible events of a commit for a live stream over many sessions: its frames have no id.

    An import that nobody publishes is history from elsewhere and no news. Raises RecordError.
    """
    if _is_silent(payload):
        return b""
    session_id = translator.session_id
    frames = [
        b"data: %s\n\n"
        % to_json(
            raw_event_json(session_id, raw, by=raw.by, delivery=delivery), inf_nan_mode="null"
        )
        for raw, delivery in await translator.select(decode_raw(payload), after=0)
    ]
    return b"".join(frames)


def _is_silent(payload: bytes) -> bool:
    if _IMPORTED not in payload:
        return False
    mark = decode(payload).events[0].imported
    return mark is not None and not mark.publish
