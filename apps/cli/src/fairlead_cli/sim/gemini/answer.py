"""Answers of the Gemini API: the frames of a stream, the full body, errors."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import orjson

from fairlead_cli.sim.response import StreamFrames
from fairlead_cli.sim.script import (
    HostedTool,
    HttpRefusal,
    Script,
    SimRequest,
    count_tokens,
    parse_arguments,
    split_text,
)
from fairlead_cli.sim.signatures import seal

Part: TypeAlias = dict[str, Any]

ID_PREFIX = ""
SENDS_RETRY_AFTER = False
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


def stream_frames(script: Script, request: SimRequest, answer_id: str) -> StreamFrames:
    """The frames of the stream. Lines end in CRLF, as the real API sends them."""
    counts = count_tokens(script, request)
    usage = {"promptTokenCount": counts.prompt, "totalTokenCount": counts.prompt}
    rest = orjson.dumps({"usageMetadata": usage} | _lead(request, answer_id))[1:]

    def chunk(part: bytes) -> bytes:
        content = b'{"parts":[' + part + b'],"role":"model"},"index":0}'
        return b'data: {"candidates":[{"content":' + content + b"]," + rest + b"\r\n\r\n"

    end = {"text": ""} | _end_signature(script)
    last = _answer(script, request, answer_id, [end])
    return StreamFrames(
        head=(),
        chunks=tuple(chunk(part) for part in _streamed_parts(script, answer_id)),
        tail=(b"data: " + orjson.dumps(last) + b"\r\n\r\n",),
        malformed=b'data: {"candidates":[{"cont\r\n\r\n',
        failure=b"data: "
        + error_body(HttpRefusal(500, "An internal error has occurred."))
        + b"\r\n\r\n",
    )


def full_body(script: Script, request: SimRequest, answer_id: str) -> bytes:
    parts = list(_parts(script, answer_id))
    if parts and parts[-1].keys() == {"text"}:
        parts[-1] |= _end_signature(script)
    return orjson.dumps(_answer(script, request, answer_id, parts or [{"text": ""}]))


def error_body(refusal: HttpRefusal) -> bytes:
    overflow = refusal.code == "context_length_exceeded"
    error: dict[str, Any] = {
        "code": refusal.status,
        "message": _TOO_LONG if overflow else refusal.message,
        "status": _STATUSES.get(refusal.status, "UNKNOWN"),
    }
    if refusal.retry_after_s is not None:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        error["details"] = [{"@type": kind, "retryDelay": f"{refusal.retry_after_s:g}s"}]
    return orjson.dumps({"error": error})


def _streamed_parts(script: Script, answer_id: str) -> Iterator[bytes]:
    for text in split_text(script.reasoning, None):
        yield b'{"thought":true,"text":%b}' % orjson.dumps(text)
    for part in _hosted_parts(script):
        yield orjson.dumps(part)
    for text in split_text(script.answer, script.chunks):
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
    for tool in script.hosted_tools:
        if tool.kind == "run":
            yield {"executableCode": {"language": "PYTHON", "code": tool.input}}
            yield {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": tool.output}}


def _calls(script: Script, answer_id: str) -> Iterator[Part]:
    """The calls, each in one part; the first is signed. Arguments must be a JSON object."""
    for index, call in enumerate(script.calls):
        if (arguments := parse_arguments(call)) is not None:
            function_call = {
                "id": f"call_{answer_id[-12:]}_{index}",
                "name": call.name,
                "args": arguments,
            }
            signature = {"thoughtSignature": seal(call.name)} if index == 0 else {}
            yield {"functionCall": function_call, **signature}


def _end_signature(script: Script) -> Part:
    """The signature at the end of an answer that has reasoning and no calls."""
    return {"thoughtSignature": seal("")} if script.reasoning and not script.calls else {}


def _lead(request: SimRequest, answer_id: str) -> dict[str, Any]:
    return {"modelVersion": request.model, "responseId": answer_id}


def _answer(
    script: Script, request: SimRequest, answer_id: str, parts: list[Part]
) -> dict[str, Any]:
    counts = count_tokens(script, request)
    candidate: dict[str, Any] = {
        "content": {"parts": parts, "role": "model"},
        "finishReason": _finish(script),
        "index": 0,
    }
    if grounding := _grounding([tool for tool in script.hosted_tools if tool.kind == "search"]):
        candidate["groundingMetadata"] = grounding
    usage = {
        "promptTokenCount": counts.prompt,
        "candidatesTokenCount": counts.output - counts.reasoning,
        "totalTokenCount": counts.prompt + counts.output,
    }
    usage |= {"thoughtsTokenCount": counts.reasoning} if counts.reasoning else {}
    usage |= {"cachedContentTokenCount": counts.cached} if counts.cached else {}
    return {"candidates": [candidate], "usageMetadata": usage, **_lead(request, answer_id)}


def _grounding(searches: list[HostedTool]) -> dict[str, Any] | None:
    if not searches:
        return None
    pages = [{"web": {"uri": "https://example.com/", "title": tool.output}} for tool in searches]
    return {"webSearchQueries": [tool.input for tool in searches], "groundingChunks": pages}


def _finish(script: Script) -> str:
    if any(parse_arguments(call) is None for call in script.calls):
        return "MALFORMED_FUNCTION_CALL"
    return _FINISHES.get(script.finish or "stop", script.finish or "STOP")
