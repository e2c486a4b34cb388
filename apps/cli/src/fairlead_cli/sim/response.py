"""A script as the bytes of one HTTP response: the frames, their pace and their end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from fairlead_cli.sim.script import HttpRefusal, Script, SimRequest, StreamFault


@dataclass(frozen=True, slots=True)
class StreamFrames:
    """The frames of a streamed answer: `chunks` are paced and counted, the others are not."""

    head: tuple[bytes, ...]
    chunks: tuple[bytes, ...]
    tail: tuple[bytes, ...]
    malformed: bytes
    failure: bytes


@dataclass(frozen=True, slots=True)
class SimResponse:
    """A response that is ready to send. A response without streaming is one frame."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    frames: tuple[bytes, ...]
    ending: Literal["close", "drop", "stall"] = "close"
    first_byte_delay_s: float = 0
    chunk_delay_s: float = 0


class SimProtocol(Protocol):
    """A provider's wire protocol, seen from the server. A module of pure functions implements it."""

    ID_PREFIX: str
    """How the ids of its answers begin."""
    SENDS_RETRY_AFTER: bool
    """Whether a refusal has a header that says when to retry."""

    def refusal_reason(self, body: object) -> str | None:
        """Why the real provider would answer 400; None when it would accept the body."""
        ...

    def parse_request(self, body: dict[str, object]) -> SimRequest:
        """The request in the words that all protocols share."""
        ...

    def stream_frames(self, script: Script, request: SimRequest, answer_id: str) -> StreamFrames:
        """The streamed answer."""
        ...

    def full_body(self, script: Script, request: SimRequest, answer_id: str) -> bytes:
        """The answer in one piece."""
        ...

    def error_body(self, refusal: HttpRefusal) -> bytes:
        """The body of an HTTP error."""
        ...


JSON = ((b"content-type", b"application/json"),)
_SSE = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
)


def build_response(
    protocol: SimProtocol, script: Script, request: SimRequest, answer_id: str
) -> SimResponse:
    """The response that the script describes."""
    delay_s = script.first_byte_delay_ms / 1000
    if script.refusal is not None:
        return build_refusal(protocol, script.refusal, delay_s=delay_s)
    if not request.stream:
        body = protocol.full_body(script, request, answer_id)
        return SimResponse(200, JSON, (body,), first_byte_delay_s=delay_s)
    frames, ending = _apply_fault(protocol.stream_frames(script, request, answer_id), script.fault)
    return SimResponse(200, _SSE, frames, ending, delay_s, script.chunk_delay_ms / 1000)


def build_refusal(
    protocol: SimProtocol, refusal: HttpRefusal, *, delay_s: float = 0
) -> SimResponse:
    """An HTTP error, with a retry-after header where the protocol has one."""
    after = refusal.retry_after_s if protocol.SENDS_RETRY_AFTER else None
    retry_after = () if after is None else ((b"retry-after", f"{after:g}".encode()),)
    body = protocol.error_body(refusal)
    return SimResponse(refusal.status, JSON + retry_after, (body,), first_byte_delay_s=delay_s)


def wrap_block(opening: bytes, parts: Sequence[bytes], closing: bytes) -> list[bytes]:
    """The chunks of one block: its opening joins the first part, its closing the last."""
    first, *rest = parts or (b"",)
    *before, last = (opening + first, *rest)
    return [*before, last + closing]


def _apply_fault(
    stream: StreamFrames, fault: StreamFault | None
) -> tuple[tuple[bytes, ...], Literal["close", "drop", "stall"]]:
    if fault is None:
        return stream.head + stream.chunks + stream.tail, "close"
    before = stream.head + stream.chunks[: fault.after]
    match fault.ending:
        case "cut":
            return before, "close"
        case "drop":
            return before, "drop"
        case "stall":
            return before, "stall"
        case "fail":
            return (*before, stream.failure), "close"
        case "malformed":
            return (*before, stream.malformed, *stream.chunks[fault.after :], *stream.tail), "close"
