"""Answers of the Messages API: the frames of a stream, the full body, errors."""

from collections.abc import Iterator
from typing import Any

import orjson

from fairlead_cli.sim.response import StreamFrames, wrap_block
from fairlead_cli.sim.script import (
    HostedTool,
    HttpRefusal,
    Script,
    ScriptedCall,
    SimRequest,
    count_tokens,
    parse_arguments,
    split_text,
)
from fairlead_cli.sim.signatures import seal, sign

ID_PREFIX = "msg_"
SENDS_RETRY_AFTER = True
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


def stream_frames(script: Script, request: SimRequest, answer_id: str) -> StreamFrames:
    chunks: list[bytes] = []
    for index, content_block in enumerate(_blocks(script, answer_id)):
        start, parts = _start_and_deltas(content_block, script)
        opening = _frame("content_block_start", index=index, content_block=start)
        lead = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":'
            % index
        )
        deltas = [lead + part + b"}\n\n" for part in parts]
        chunks += wrap_block(opening, deltas, _frame("content_block_stop", index=index))
    message = _message(script, request, answer_id) | {"content": [], "stop_reason": None}
    message["usage"] = message["usage"] | {"output_tokens": 1}
    delta = {"stop_reason": _finish(script), "stop_sequence": None}
    return StreamFrames(
        head=(_frame("message_start", message=message), _frame("ping")),
        chunks=tuple(chunks),
        tail=(
            _frame("message_delta", delta=delta, usage=_usage(script, request)),
            _frame("message_stop"),
        ),
        malformed=b'event: content_block_delta\ndata: {"type":"content_block_delta","ind\n\n',
        failure=b"event: error\ndata: "
        + error_body(HttpRefusal(500, "Internal server error"))
        + b"\n\n",
    )


def full_body(script: Script, request: SimRequest, answer_id: str) -> bytes:
    return orjson.dumps(_message(script, request, answer_id))


def error_body(refusal: HttpRefusal) -> bytes:
    overflow = refusal.code == "context_length_exceeded"
    error = {
        "type": _ERRORS.get(refusal.status, "api_error"),
        "message": _TOO_LONG if overflow else refusal.message,
    }
    return orjson.dumps({"type": "error", "error": error, "request_id": "req_sim"})


def _frame(kind: str, **fields: object) -> bytes:
    data = orjson.dumps({"type": kind, **fields})
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def _blocks(script: Script, answer_id: str) -> Iterator[dict[str, Any]]:
    if script.reasoning:
        signature = sign(script.reasoning)
        yield {"type": "thinking", "thinking": script.reasoning, "signature": signature}
    for index, tool in enumerate(script.hosted_tools):
        yield from _hosted_blocks(tool, f"srvtoolu_{answer_id[-12:]}_{index}")
    if script.answer:
        yield {"type": "text", "text": script.answer}
    mark = "_thought_" if script.reasoning else "_"
    for index, call in enumerate(script.calls):
        yield _call_block(call, f"toolu_{answer_id[-12:]}{mark}{index}")


def _call_block(call: ScriptedCall, id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": call.name, "input": parse_arguments(call) or {}}


def _hosted_blocks(tool: HostedTool, id_: str) -> Iterator[dict[str, Any]]:
    search = tool.kind == "search"
    name = "web_search" if search else "code_execution"
    input_ = {"query" if search else "code": tool.input}
    yield {"type": "server_tool_use", "id": id_, "name": name, "input": input_}
    if search:
        page = {"title": tool.output, "url": "https://example.com/", "page_age": None}
        result = {"type": "web_search_result", "encrypted_content": seal(tool.output), **page}
        yield {"type": "web_search_tool_result", "tool_use_id": id_, "content": [result]}
        return
    output = {"stdout": tool.output, "stderr": "", "return_code": 0, "content": []}
    content = {"type": "code_execution_result", **output}
    yield {"type": "code_execution_tool_result", "tool_use_id": id_, "content": content}


def _start_and_deltas(block: dict[str, Any], script: Script) -> tuple[dict[str, Any], list[bytes]]:
    """The content of `content_block_start`, and the deltas that complete the block."""
    match block["type"]:
        case "thinking":
            texts = split_text(block["thinking"], None)
            deltas = [_delta("thinking_delta", "thinking", text) for text in texts]
            signature = _delta("signature_delta", "signature", block["signature"])
            return block | {"thinking": "", "signature": ""}, [*deltas, signature]
        case "text":
            texts = split_text(block["text"], script.chunks)
            return block | {"text": ""}, [_delta("text_delta", "text", text) for text in texts]
        case "tool_use":
            number = int(block["id"].rpartition("_")[2])
            parts = ("", *split_text(script.calls[number].arguments, 2))
            return block | {"input": {}}, [_json_delta(part) for part in parts]
        case "server_tool_use":
            return block | {"input": {}}, [_json_delta(orjson.dumps(block["input"]).decode())]
        case _:
            return block, []


def _delta(kind: str, name: str, text: str) -> bytes:
    return b'{"type":"%b","%b":%b}' % (kind.encode(), name.encode(), orjson.dumps(text))


def _json_delta(part: str) -> bytes:
    return _delta("input_json_delta", "partial_json", part)


def _message(script: Script, request: SimRequest, answer_id: str) -> dict[str, Any]:
    return {
        "id": answer_id,
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": list(_blocks(script, answer_id)),
        "stop_reason": _finish(script),
        "stop_sequence": None,
        "usage": _usage(script, request) | {"service_tier": "standard"},
    }


def _finish(script: Script) -> str:
    reason = script.finish or ("tool_calls" if script.calls else "stop")
    return _FINISHES.get(reason, reason)


def _usage(script: Script, request: SimRequest) -> dict[str, Any]:
    counts = count_tokens(script, request)
    return {
        "input_tokens": counts.prompt - counts.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": counts.output,
    }
