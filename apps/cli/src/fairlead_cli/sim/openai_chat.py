"""Chat Completions seen from the server: the checks of the real API, frames and full answers."""

from collections.abc import Sequence
from typing import Any

import orjson

from fairlead_cli.sim.conversation import ConversationMessage, build_request, text_of
from fairlead_cli.sim.response import StreamFrames
from fairlead_cli.sim.script import (
    HttpRefusal,
    Script,
    ScriptedCall,
    SimRequest,
    count_tokens,
    split_text,
)

ID_PREFIX = "chatcmpl-"
SENDS_RETRY_AFTER = True
_CREATED = 1_700_000_000
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_DONE = b"data: [DONE]\n\n"


def refusal_reason(body: object) -> str | None:
    if not isinstance(body, dict):
        return "We could not parse the JSON body of your request."
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "you must provide a model parameter"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "Missing required parameter: 'messages'."
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            return f"Invalid value for 'messages[{index}].role'."
    return _check_tool_messages(messages)


def parse_request(body: dict[str, Any]) -> SimRequest:
    options = body.get("stream_options") or {}
    return build_request(
        [_to_message(message) for message in body["messages"]],
        model=body["model"],
        stream=body.get("stream") is True,
        include_usage=options.get("include_usage") is True,
    )


def stream_frames(script: Script, request: SimRequest, answer_id: str) -> StreamFrames:
    """The frames of the stream. Only the part that changes is encoded for each chunk."""
    lead = orjson.dumps(_lead(request, answer_id, "chat.completion.chunk"))[:-1]
    before, after = b"data: " + lead + b',"choices":[{"index":0,"delta":', b"}]}\n\n"
    unfinished = b',"finish_reason":null' + after

    def delta(value: dict[str, Any]) -> bytes:
        return before + orjson.dumps(value) + unfinished

    reasoning_frames = [
        delta({"reasoning_content": text}) for text in split_text(script.reasoning, None)
    ]
    texts = split_text(script.answer, script.chunks)
    text_frames = [
        before + b'{"content":' + orjson.dumps(text) + b"}" + unfinished for text in texts
    ]
    call_frames = [
        delta({"tool_calls": [part]})
        for index, call in enumerate(script.calls)
        for part in _fragments(index, call, answer_id)
    ]
    finish = b'{},"finish_reason":' + orjson.dumps(_finish(script))
    usage = b',"choices":[],"usage":' + orjson.dumps(_usage(script, request)) + b"}\n\n"
    return StreamFrames(
        head=(delta({"role": "assistant", "content": ""}),),
        chunks=(*reasoning_frames, *text_frames, *call_frames),
        tail=(
            before + finish + after,
            *([b"data: " + lead + usage] if request.include_usage else []),
            _DONE,
        ),
        malformed=before + b'{"content": "bro\n\n',
        failure=b"data: "
        + error_body(HttpRefusal(500, "The simulated provider broke off"))
        + b"\n\n",
    )


def full_body(script: Script, request: SimRequest, answer_id: str) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": script.answer or None}
    if script.reasoning:
        message["reasoning_content"] = script.reasoning
    if script.calls:
        message["tool_calls"] = [
            _call(index, call, answer_id) for index, call in enumerate(script.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(script)}
    answer = _lead(request, answer_id, "chat.completion")
    return orjson.dumps(answer | {"choices": [choice], "usage": _usage(script, request)})


def error_body(refusal: HttpRefusal) -> bytes:
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(refusal.status)
    if kind is None:
        kind = "invalid_request_error" if refusal.status < 500 else "server_error"  # noqa: PLR2004
    error = {"message": refusal.message, "type": kind, "param": None, "code": refusal.code}
    return orjson.dumps({"error": error})


def _check_tool_messages(messages: Sequence[dict[str, Any]]) -> str | None:
    """Tool messages must directly follow their calls, and every call needs one."""
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"messages[{index}]: a 'tool' message must follow its 'tool_calls'."
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return (
                f"messages[{index}]: tool_call_ids without a response: {', '.join(sorted(waiting))}"
            )
        elif calls := message.get("tool_calls"):
            waiting = {call.get("id") for call in calls}
    return f"tool_call_ids without a response: {', '.join(sorted(waiting))}" if waiting else None


def _to_message(message: dict[str, Any]) -> ConversationMessage:
    role: Any = "system" if message["role"] == "developer" else message["role"]
    return ConversationMessage(
        role, text_of(message.get("content")), len(message.get("tool_calls") or ())
    )


def _lead(request: SimRequest, answer_id: str, kind: str) -> dict[str, Any]:
    return {"id": answer_id, "object": kind, "created": _CREATED, "model": request.model}


def _finish(script: Script) -> str:
    return script.finish or ("tool_calls" if script.calls else "stop")


def _call(index: int, call: ScriptedCall, answer_id: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": f"call_{answer_id[-12:]}_{index}", "type": "function", "function": function}


def _fragments(index: int, call: ScriptedCall, answer_id: str) -> list[dict[str, Any]]:
    """The head of the call, then its arguments in two fragments."""
    head = {"index": index, **_call(index, ScriptedCall(call.name, ""), answer_id)}
    parts = split_text(call.arguments, 2)
    return [head, *({"index": index, "function": {"arguments": part}} for part in parts)]


def _usage(script: Script, request: SimRequest) -> dict[str, Any]:
    counts = count_tokens(script, request)
    return {
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.output,
        "total_tokens": counts.prompt + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    }
