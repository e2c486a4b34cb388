"""What the simulated provider will do, as a value: one turn's answer, its pace and its faults."""

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import orjson

Ending: TypeAlias = Literal["cut", "drop", "stall", "malformed", "fail"]
ENDINGS: tuple[Ending, ...] = ("cut", "drop", "stall", "malformed", "fail")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call to ask for; `arguments` is sent as it is, JSON or not."""

    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class Hosted:
    """A tool that the provider runs itself: a search of the web, or a run of code."""

    kind: Literal["search", "run"]
    asked: str
    found: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP error instead of an answer."""

    status: int
    message: str = "The simulated provider refuses"
    code: str | None = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """How a stream breaks after that many chunks.

    cut: a clean end without the end marker. drop: the connection closes mid-body. stall: silence.
    malformed: one frame that is not JSON. fail: an error object inside the stream.
    """

    ending: Ending
    after: int = 1


@dataclass(frozen=True, slots=True)
class Tokens:
    """Reported usage; None is counted from the texts."""

    input: int | None = None
    output: int | None = None
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Script:
    """One turn: reasoning, hosted tools, the answer, calls.

    `times` limits refusal and fault to the first attempts of the same request.
    """

    answer: str = ""
    reasoning: str = ""
    chunks: int | None = None
    chunk_delay_ms: float = 0
    first_byte_delay_ms: float = 0
    hosted: tuple[Hosted, ...] = ()
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    tokens: Tokens = Tokens()
    refusal: Refusal | None = None
    fault: Fault | None = None
    times: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """What any protocol's request asks, in neutral words.

    `rounds` counts the tool rounds since the user last spoke: the turn of a script to play.
    """

    model: str
    said: str
    rounds: int = 0
    tool_said: str = ""
    stream: bool = False
    include_usage: bool = False
    prompt_length: int = 0
    heard: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """Token counts of one turn: `prompt` includes `cached`, `output` includes `thought`."""

    prompt: int
    cached: int
    output: int
    thought: int


def tallied(script: Script, ask: Ask) -> Tally:
    """What the turn costs: as scripted, else counted from the texts."""
    tokens = script.tokens
    thought = len(pieces(script.reasoning, None))
    prompt = tokens.input if tokens.input is not None else max(1, ask.prompt_length // 4)
    made = len(pieces(script.answer, script.chunks)) + thought
    output = tokens.output if tokens.output is not None else made
    return Tally(prompt, min(tokens.cached, prompt), output, min(thought, output))


def steady(script: Script, attempt: int) -> Script:
    """The script of a later attempt: its refusal and fault are over once they came often enough."""
    if script.times is None or attempt <= script.times:
        return script
    return replace(script, refusal=None, fault=None)


def pieces(text: str, chunks: int | None) -> tuple[str, ...]:
    """The text in at most that many pieces of near equal length; by default, one for each word."""
    if chunks is None:
        return tuple(re.findall(r"\s*\S+\s*$|\s*\S+", text)) or ((text,) if text else ())
    count = max(1, min(chunks, len(text)))
    edges = [len(text) * n // count for n in range(count + 1)]
    return tuple(text[a:b] for a, b in pairwise(edges)) if text else ()


def filler(chunks: int) -> str:
    """A text that falls into exactly that many words."""
    return " ".join(f"word{n}" for n in range(chunks))


def arguments_of(call: Call) -> dict[str, Any] | None:
    """The call's arguments as an object, or None when they are none."""
    try:
        value = orjson.loads(call.arguments or "{}")
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
