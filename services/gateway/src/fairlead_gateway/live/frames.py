"""Encodes commits as frames of server-sent events, each event once for all clients."""

from typing import Final, NamedTuple

from fairlead_gateway.http.sse import event_frame
from fairlead_gateway.live.long_event import encode_event
from fairlead_gateway.log.envelopes import EnvelopeTranslator
from fairlead_schema.delta import Delta, ReasoningDelta, TextDelta, ToolInputDelta, ToolOutputDelta
from fairlead_schema.ids import SessionId
from fairlead_schema.public_events import public_delta, raw_event_json
from fairlead_schema.raw_records.raw_commit import RawCommit
from fairlead_schema.raw_records.raw_decoder import decode_raw
from fairlead_schema.record import decode
from fairlead_service.ids import event_id, now_ms

PIECE_LENGTH_MAX: Final = 128 * 1024
"""JSON needs up to six bytes for a character, and a frame stays below one mebibyte."""
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
        frame = b"id: %d\ndata: %s\n\n" % (raw.seq, encode_event(body))
        everything.append(frame)
        if raw.kind.visibility == "public":
            public.append(frame)
    joined = b"".join(everything)
    return CommitFrames(joined if len(public) == len(everything) else b"".join(public), joined)


def delta_frames(session_id: SessionId, delta: Delta) -> bytes:
    """A live fragment as frames. A long one becomes several, because clients refuse long frames."""
    pieces = [delta]
    if isinstance(delta, TextDelta | ReasoningDelta | ToolInputDelta | ToolOutputDelta):
        text = delta.delta
        pieces = [
            delta.model_copy(update={"delta": text[start : start + PIECE_LENGTH_MAX]})
            for start in range(0, len(text) or 1, PIECE_LENGTH_MAX)
        ]
    now = now_ms()
    return b"".join(
        event_frame(public_delta(session_id, event_id(), piece, at=now)) for piece in pieces
    )


async def encode_live_commit(translator: EnvelopeTranslator, payload: bytes) -> bytes:
    """The visible events of a commit for a live stream over many sessions: its frames have no id.

    An import that nobody publishes is history from elsewhere and no news. Raises RecordError.
    """
    if _is_silent(payload):
        return b""
    session_id = translator.session_id
    events = await translator.select(decode_raw(payload), after=0)
    frames = (
        encode_event(raw_event_json(session_id, raw, by=raw.by, delivery=delivery))
        for raw, delivery in events
    )
    return b"".join(b"data: %s\n\n" % frame for frame in frames)


def _is_silent(payload: bytes) -> bool:
    if _IMPORTED not in payload:
        return False
    mark = decode(payload).events[0].imported
    return mark is not None and not mark.publish
