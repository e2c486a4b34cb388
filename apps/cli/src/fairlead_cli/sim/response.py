"""A script as the bytes of one answer: what is sent, at what pace, and how it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from fairlead_cli.sim.script import Ask, Fault, Refusal, Script


@dataclass(frozen=True, slots=True)
class Reel:
    """A protocol's frames of one answer: `chunks` are paced and counted, the others come at once."""

    head: tuple[bytes, ...]
    chunks: tuple[bytes, ...]
    tail: tuple[bytes, ...]
    malformed: bytes
    failure: bytes


@dataclass(frozen=True, slots=True)
class Play:
    """One answer, ready to send. An answer that is no stream is one frame."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    frames: tuple[bytes, ...]
    ending: Literal["close", "drop", "stall"] = "close"
    first_byte_delay_s: float = 0
    chunk_delay_s: float = 0


class Dialect(Protocol):
    """A wire protocol as its server speaks it. A module of pure functions is one."""

    PREFIX: str
    """How the ids of its answers begin."""
    ADVISES: bool
    """Whether a refusal says in a header when to come back."""

    def complaint(self, body: object) -> str | None:
        """Why the real provider would answer 400, if it would."""
        ...

    def ask(self, body: dict[str, object]) -> Ask:
        """The request in neutral words."""
        ...

    def reel(self, script: Script, ask: Ask, answer_id: str) -> Reel:
        """The streamed answer."""
        ...

    def whole(self, script: Script, ask: Ask, answer_id: str) -> bytes:
        """The answer in one piece."""
        ...

    def error(self, refusal: Refusal) -> bytes:
        """The body of an HTTP error."""
        ...


JSON = ((b"content-type", b"application/json"),)
_SSE = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
)


def played(dialect: Dialect, script: Script, ask: Ask, answer_id: str) -> Play:
    """The answer that the script asks for."""
    wait_s = script.first_byte_delay_ms / 1000
    if script.refusal is not None:
        return refused(dialect, script.refusal, wait_s=wait_s)
    if not ask.stream:
        return Play(200, JSON, (dialect.whole(script, ask, answer_id),), first_byte_delay_s=wait_s)
    frames, ending = _faulted(dialect.reel(script, ask, answer_id), script.fault)
    return Play(200, _SSE, frames, ending, wait_s, script.chunk_delay_ms / 1000)


def refused(dialect: Dialect, refusal: Refusal, *, wait_s: float = 0) -> Play:
    """An HTTP error with its advice on when to come back."""
    after = refusal.retry_after_s if dialect.ADVISES else None
    advice = () if after is None else ((b"retry-after", f"{after:g}".encode()),)
    body = dialect.error(refusal)
    return Play(refusal.status, JSON + advice, (body,), first_byte_delay_s=wait_s)


def block(opening: bytes, parts: Sequence[bytes], closing: bytes) -> list[bytes]:
    """Chunks of one block: its opening goes with the first of them, its closing with the last."""
    first, *rest = parts or (b"",)
    *before, last = (opening + first, *rest)
    return [*before, last + closing]


def _faulted(
    reel: Reel, fault: Fault | None
) -> tuple[tuple[bytes, ...], Literal["close", "drop", "stall"]]:
    if fault is None:
        return reel.head + reel.chunks + reel.tail, "close"
    before = reel.head + reel.chunks[: fault.after]
    match fault.ending:
        case "cut":
            return before, "close"
        case "drop":
            return before, "drop"
        case "stall":
            return before, "stall"
        case "fail":
            return (*before, reel.failure), "close"
        case "malformed":
            return (*before, reel.malformed, *reel.chunks[fault.after :], *reel.tail), "close"
