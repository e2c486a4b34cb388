"""Gemini answers: the frames of a stream, the answer in one piece, errors."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import orjson

from fairlead_cli.sim.response import Reel
from fairlead_cli.sim.script import (
    Ask,
    Hosted,
    Refusal,
    Script,
    arguments_of,
    pieces,
    tallied,
)
from fairlead_cli.sim.seal import closed

Part: TypeAlias = dict[str, Any]

PREFIX = ""
ADVISES = False
_FINISHES = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "tool_calls": "STOP",
}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TOO_LONG = "The input token count (9000) exceeds the maximum number of tokens allowed (8192)."


def reel(script: Script, ask: Ask, answer_id: str) -> Reel:
    """Lines end in CRLF here, as on the real wire."""
    tally = tallied(script, ask)
    counts = {"promptTokenCount": tally.prompt, "totalTokenCount": tally.prompt}
    rest = orjson.dumps({"usageMetadata": counts} | _lead(ask, answer_id))[1:]

    def chunk(part: bytes) -> bytes:
        content = b'{"parts":[' + part + b'],"role":"model"},"index":0}'
        return b'data: {"candidates":[{"content":' + content + b"]," + rest + b"\r\n\r\n"

    end = {"text": ""} | _signed(script)
    last = _answer(script, ask, answer_id, [end])
    return Reel(
        head=(),
        chunks=tuple(chunk(part) for part in _streamed(script, answer_id)),
        tail=(b"data: " + orjson.dumps(last) + b"\r\n\r\n",),
        malformed=b'data: {"candidates":[{"cont\r\n\r\n',
        failure=b"data: " + error(Refusal(500, "An internal error has occurred.")) + b"\r\n\r\n",
    )


def whole(script: Script, ask: Ask, answer_id: str) -> bytes:
    parts = list(_parts(script, answer_id))
    if parts and parts[-1].keys() == {"text"}:
        parts[-1] |= _signed(script)
    return orjson.dumps(_answer(script, ask, answer_id, parts or [{"text": ""}]))


def error(refusal: Refusal) -> bytes:
    overflow = refusal.code == "context_length_exceeded"
    said: dict[str, Any] = {
        "code": refusal.status,
        "message": _TOO_LONG if overflow else refusal.message,
        "status": _STATUSES.get(refusal.status, "UNKNOWN"),
    }
    if refusal.retry_after_s is not None:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        said["details"] = [{"@type": kind, "retryDelay": f"{refusal.retry_after_s:g}s"}]
    return orjson.dumps({"error": said})


def _streamed(script: Script, answer_id: str) -> Iterator[bytes]:
    for text in pieces(script.reasoning, None):
        yield b'{"thought":true,"text":%b}' % orjson.dumps(text)
    for part in _hosted_parts(script):
        yield orjson.dumps(part)
    for text in pieces(script.answer, script.chunks):
        yield b'{"text":%b}' % orjson.dumps(text)
    for part in _calls(script, answer_id):
        yield orjson.dumps(part)


def _parts(script: Script, answer_id: str) -> Iterator[Part]:
    if script.reasoning:
        yield {"thought": True, "text": script.reasoning}
    yield from _hosted_parts(script)
    if script.answer:
        yield {"text": script.answer}
    yield from _calls(script, answer_id)


def _hosted_parts(script: Script) -> Iterator[Part]:
    for hosted in script.hosted:
        if hosted.kind == "run":
            yield {"executableCode": {"language": "PYTHON", "code": hosted.asked}}
            yield {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": hosted.found}}


def _calls(script: Script, answer_id: str) -> Iterator[Part]:
    """Calls arrive whole; the first of them is signed. One without an object is never made."""
    for at, call in enumerate(script.calls):
        if (given := arguments_of(call)) is not None:
            made = {"id": f"call_{answer_id[-12:]}_{at}", "name": call.name, "args": given}
            signed = {"thoughtSignature": closed(call.name)} if at == 0 else {}
            yield {"functionCall": made, **signed}


def _signed(script: Script) -> Part:
    """An answer that was thought about and calls nothing is signed at its end."""
    return {"thoughtSignature": closed("")} if script.reasoning and not script.calls else {}


def _lead(ask: Ask, answer_id: str) -> dict[str, Any]:
    return {"modelVersion": ask.model, "responseId": answer_id}


def _answer(script: Script, ask: Ask, answer_id: str, parts: list[Part]) -> dict[str, Any]:
    tally = tallied(script, ask)
    candidate: dict[str, Any] = {
        "content": {"parts": parts, "role": "model"},
        "finishReason": _finish(script),
        "index": 0,
    }
    if grounding := _grounding([one for one in script.hosted if one.kind == "search"]):
        candidate["groundingMetadata"] = grounding
    usage = {
        "promptTokenCount": tally.prompt,
        "candidatesTokenCount": tally.output - tally.thought,
        "totalTokenCount": tally.prompt + tally.output,
    }
    usage |= {"thoughtsTokenCount": tally.thought} if tally.thought else {}
    usage |= {"cachedContentTokenCount": tally.cached} if tally.cached else {}
    return {"candidates": [candidate], "usageMetadata": usage, **_lead(ask, answer_id)}


def _grounding(searches: list[Hosted]) -> dict[str, Any] | None:
    if not searches:
        return None
    pages = [{"web": {"uri": "https://example.com/", "title": one.found}} for one in searches]
    return {"webSearchQueries": [one.asked for one in searches], "groundingChunks": pages}


def _finish(script: Script) -> str:
    if any(arguments_of(call) is None for call in script.calls):
        return "MALFORMED_FUNCTION_CALL"
    return _FINISHES.get(script.finish or "stop", script.finish or "STOP")
