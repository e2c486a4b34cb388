"""A script: the answer of one simulated turn, with its pace and its faults."""

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import orjson

Ending: TypeAlias = Literal["cut", "drop", "stall", "malformed", "fail"]
ENDINGS: tuple[Ending, ...] = ("cut", "drop", "stall", "malformed", "fail")


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call of the model. `arguments` is sent as it is, JSON or not."""

    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class HostedTool:
    """A tool that the provider runs itself: a web search or a run of code."""

    kind: Literal["search", "run"]
    input: str
    output: str = ""


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """An HTTP error instead of an answer."""

    status: int
    message: str = "The simulated provider refuses"
    code: str | None = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class StreamFault:
    """How a stream breaks after that many chunks.

    cut: a clean end without the end marker. drop: the connection closes mid-body. stall: silence.
    malformed: one frame that is not JSON. fail: an error object inside the stream.
    """

    ending: Ending
    after: int = 1


@dataclass(frozen=True, slots=True)
class ScriptedTokens:
    """The usage to report. None means: count the texts."""

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
    hosted_tools: tuple[HostedTool, ...] = ()
    calls: tuple[ScriptedCall, ...] = ()
    finish: str | None = None
    tokens: ScriptedTokens = ScriptedTokens()
    refusal: HttpRefusal | None = None
    fault: StreamFault | None = None
    times: int | None = None


@dataclass(frozen=True, slots=True)
class SimRequest:
    """A model request in the same words for every protocol.

    `rounds` counts the tool rounds and repairs since the last user message: it selects the turn of a script.
    """

    model: str
    user_text: str
    rounds: int = 0
    tool_text: str = ""
    stream: bool = False
    include_usage: bool = False
    prompt_length: int = 0
    full_text: str = ""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """The tokens of one turn: `prompt` includes `cached`, `output` includes `reasoning`."""

    prompt: int
    cached: int
    output: int
    reasoning: int


def count_tokens(script: Script, request: SimRequest) -> TokenCounts:
    """The usage of a turn: as scripted, else counted from the texts."""
    tokens = script.tokens
    reasoning = len(split_text(script.reasoning, None))
    prompt = tokens.input if tokens.input is not None else max(1, request.prompt_length // 4)
    output_length = len(split_text(script.answer, script.chunks)) + reasoning
    output = tokens.output if tokens.output is not None else output_length
    return TokenCounts(prompt, min(tokens.cached, prompt), output, min(reasoning, output))


def script_for_attempt(script: Script, attempt: int) -> Script:
    """The script without its refusal and fault, once `times` attempts have met them."""
    if script.times is None or attempt <= script.times:
        return script
    return replace(script, refusal=None, fault=None)


def split_text(text: str, chunks: int | None) -> tuple[str, ...]:
    """Split a text into at most that many pieces of near equal length; None splits by words."""
    if chunks is None:
        return tuple(re.findall(r"\s*\S+\s*$|\s*\S+", text)) or ((text,) if text else ())
    count = max(1, min(chunks, len(text)))
    edges = [len(text) * n // count for n in range(count + 1)]
    return tuple(text[a:b] for a, b in pairwise(edges)) if text else ()


def filler_text(chunks: int) -> str:
    """A text of exactly that many words."""
    return " ".join(f"word{n}" for n in range(chunks))


def parse_arguments(call: ScriptedCall) -> dict[str, Any] | None:
    """The call's arguments as an object; None when they are not a JSON object."""
    try:
        value = orjson.loads(call.arguments or "{}")
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
