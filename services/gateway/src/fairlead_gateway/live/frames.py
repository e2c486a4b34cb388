"""Encodes commits as frames of server-sent events, each event once for all clients."""

from typing import Any, Final, NamedTuple

from fairlead_gateway.http.sse import event_frame
from fairlead_gateway.live.session_locations import SessionLocations, with_location
from fairlead_gateway.log.envelopes import EnvelopeTranslator
from fairlead_schema.delta import Delta, ReasoningDelta, TextDelta, ToolInputDelta, ToolOutputDelta
from fairlead_schema.events import ExecutionClaimed, ExecutionReleased
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.public_events import EventEnvelope, public_delta, raw_event_json
from fairlead_schema.raw_records.long_event import encode_event
from fairlead_schema.raw_records.raw_commit import RawCommit
from fairlead_schema.raw_records.raw_decoder import decode_raw
from fairlead_schema.record import RecordError, decode
from fairlead_service.ids import event_id, now_ms

PIECE_LENGTH_MAX: Final = 128 * 1024
"""JSON needs up to six bytes for a character, and a frame stays below one mebibyte."""
STATUS: Final = "session.status"
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


def delta_frames(session_id: SessionId, delta: Delta, location: LocationRef | None = None) -> bytes:
    """A live fragment as frames. A long one becomes several, because clients refuse long frames."""
    pieces = [delta]
    if isinstance(delta, TextDelta | ReasoningDelta | ToolInputDelta | ToolOutputDelta):
        text = delta.delta
        pieces = [
            delta.model_copy(update={"delta": text[start : start + PIECE_LENGTH_MAX]})
            for start in range(0, len(text) or 1, PIECE_LENGTH_MAX)
        ]
    now = now_ms()
    envelopes = (public_delta(session_id, event_id(), piece, at=now) for piece in pieces)
    if location is not None:
        envelopes = (item.model_copy(update={"location": location}) for item in envelopes)
    return b"".join(map(event_frame, envelopes))


async def encode_live_commit(
    translator: EnvelopeTranslator, locations: SessionLocations, payload: bytes
) -> bytes:
    """The visible events of a commit for a live stream over many sessions: its frames have no id.

    An import that nobody publishes is history from elsewhere and no news. Raises RecordError.
    """
    at, is_silent = translator.at, _is_silent(payload)
    commit = decode_raw(payload)
    if is_silent:
        for raw in commit.events:
            locations.follow(at, raw)
        return b""
    await locations.look_up(at, before=commit.events[0].seq)
    frames: list[bytes] = []
    for raw, delivery in await translator.select(commit, after=0):
        event = raw_event_json(at.session_id, raw, by=raw.by, delivery=delivery)
        frames.append(encode_event(with_location(event, locations.follow(at, raw))))
    return b"".join(b"data: %s\n\n" % frame for frame in frames)


def status_frames(session_id: SessionId, payload: bytes) -> bytes:
    """Live frames that say when a runner took the session, and why it left it. Raises nothing."""
    if b'"execution.' not in payload or _is_silent(payload):
        return b""
    try:
        events = decode_raw(payload).events
    except RecordError:
        return b""
    frames = []
    for raw in events:
        if raw.kind is ExecutionClaimed:
            fields: dict[str, Any] = {"state": "running"}
        elif raw.kind is ExecutionReleased:
            kept = ("reason", "detail", "wakeAt")
            fields = {"state": "rested", **{k: raw.data[k] for k in kept if k in raw.data}}
        else:
            continue
        data = {"timestamp": raw.time, "sessionID": session_id, "seq": raw.seq, **fields}
        frames.append(event_frame(EventEnvelope(id=raw.id, type=STATUS, data=data)))
    return b"".join(frames)


def _is_silent(payload: bytes) -> bool:
    if _IMPORTED not in payload:
        return False
    mark = decode(payload).events[0].imported
    return mark is not None and not mark.publish
