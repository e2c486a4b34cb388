"""Messages answers: the frames of a stream, the answer in one piece, errors."""

from collections.abc import Iterator
from typing import Any

import orjson

from fairlead_cli.sim.response import Reel, block
from fairlead_cli.sim.script import (
    Ask,
    Call,
    Hosted,
    Refusal,
    Script,
    arguments_of,
    pieces,
    tallied,
)
from fairlead_cli.sim.seal import closed, seal

PREFIX = "msg_"
ADVISES = True
_FINISHES = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_TOO_LONG = "prompt is too long: 9000 tokens > 8192 maximum"


def reel(script: Script, ask: Ask, answer_id: str) -> Reel:
    chunks: list[bytes] = []
    for index, made in enumerate(_blocks(script, answer_id)):
        start, parts = _streamed(made, script)
        opening = _frame("content_block_start", index=index, content_block=start)
        lead = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":'
            % index
        )
        deltas = [lead + part + b"}\n\n" for part in parts]
        chunks += block(opening, deltas, _frame("content_block_stop", index=index))
    begun = _message(script, ask, answer_id) | {"content": [], "stop_reason": None}
    begun["usage"] = begun["usage"] | {"output_tokens": 1}
    delta = {"stop_reason": _finish(script), "stop_sequence": None}
    return Reel(
        head=(_frame("message_start", message=begun), _frame("ping")),
        chunks=tuple(chunks),
        tail=(
            _frame("message_delta", delta=delta, usage=_usage(script, ask)),
            _frame("message_stop"),
        ),
        malformed=b'event: content_block_delta\ndata: {"type":"content_block_delta","ind\n\n',
        failure=b"event: error\ndata: " + error(Refusal(500, "Internal server error")) + b"\n\n",
    )


def whole(script: Script, ask: Ask, answer_id: str) -> bytes:
    return orjson.dumps(_message(script, ask, answer_id))


def error(refusal: Refusal) -> bytes:
    overflow = refusal.code == "context_length_exceeded"
    said = {
        "type": _ERRORS.get(refusal.status, "api_error"),
        "message": _TOO_LONG if overflow else refusal.message,
    }
    return orjson.dumps({"type": "error", "error": said, "request_id": "req_sim"})


def _frame(kind: str, **fields: object) -> bytes:
    data = orjson.dumps({"type": kind, **fields})
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def _blocks(script: Script, answer_id: str) -> Iterator[dict[str, Any]]:
    if script.reasoning:
        signature = seal(script.reasoning)
        yield {"type": "thinking", "thinking": script.reasoning, "signature": signature}
    for at, hosted in enumerate(script.hosted):
        yield from _hosted(hosted, f"srvtoolu_{answer_id[-12:]}_{at}")
    if script.answer:
        yield {"type": "text", "text": script.answer}
    mark = "_thought_" if script.reasoning else "_"
    for at, call in enumerate(script.calls):
        yield _call(call, f"toolu_{answer_id[-12:]}{mark}{at}")


def _call(call: Call, id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": call.name, "input": arguments_of(call) or {}}


def _hosted(hosted: Hosted, id_: str) -> Iterator[dict[str, Any]]:
    search = hosted.kind == "search"
    name = "web_search" if search else "code_execution"
    asked = {"query" if search else "code": hosted.asked}
    yield {"type": "server_tool_use", "id": id_, "name": name, "input": asked}
    if search:
        page = {"title": hosted.found, "url": "https://example.com/", "page_age": None}
        found = {"type": "web_search_result", "encrypted_content": closed(hosted.found), **page}
        yield {"type": "web_search_tool_result", "tool_use_id": id_, "content": [found]}
        return
    ran = {"stdout": hosted.found, "stderr": "", "return_code": 0, "content": []}
    content = {"type": "code_execution_result", **ran}
    yield {"type": "code_execution_tool_result", "tool_use_id": id_, "content": content}


def _streamed(made: dict[str, Any], script: Script) -> tuple[dict[str, Any], list[bytes]]:
    """How a block begins, and the deltas that complete it."""
    match made["type"]:
        case "thinking":
            texts = pieces(made["thinking"], None)
            told = [_delta("thinking_delta", "thinking", text) for text in texts]
            signed = _delta("signature_delta", "signature", made["signature"])
            return made | {"thinking": "", "signature": ""}, [*told, signed]
        case "text":
            texts = pieces(made["text"], script.chunks)
            return made | {"text": ""}, [_delta("text_delta", "text", text) for text in texts]
        case "tool_use":
            number = int(made["id"].rpartition("_")[2])
            parts = ("", *pieces(script.calls[number].arguments, 2))
            return made | {"input": {}}, [_json(part) for part in parts]
        case "server_tool_use":
            return made | {"input": {}}, [_json(orjson.dumps(made["input"]).decode())]
        case _:
            return made, []


def _delta(kind: str, name: str, text: str) -> bytes:
    return b'{"type":"%b","%b":%b}' % (kind.encode(), name.encode(), orjson.dumps(text))


def _json(part: str) -> bytes:
    return _delta("input_json_delta", "partial_json", part)


def _message(script: Script, ask: Ask, answer_id: str) -> dict[str, Any]:
    return {
        "id": answer_id,
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": list(_blocks(script, answer_id)),
        "stop_reason": _finish(script),
        "stop_sequence": None,
        "usage": _usage(script, ask) | {"service_tier": "standard"},
    }


def _finish(script: Script) -> str:
    named = script.finish or ("tool_calls" if script.calls else "stop")
    return _FINISHES.get(named, named)


def _usage(script: Script, ask: Ask) -> dict[str, Any]:
    tally = tallied(script, ask)
    return {
        "input_tokens": tally.prompt - tally.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tally.cached,
        "output_tokens": tally.output,
    }
