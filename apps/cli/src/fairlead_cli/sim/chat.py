"""Chat Completions as a server speaks it: checks like the real thing, frames, whole answers."""

from collections.abc import Sequence
from typing import Any

import orjson

from fairlead_cli.sim.conversation import Line, heard, text_of
from fairlead_cli.sim.response import Reel
from fairlead_cli.sim.script import Ask, Call, Refusal, Script, pieces, tallied

PREFIX = "chatcmpl-"
ADVISES = True
_CREATED = 1_700_000_000
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_DONE = b"data: [DONE]\n\n"


def complaint(body: object) -> str | None:
    if not isinstance(body, dict):
        return "We could not parse the JSON body of your request."
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "you must provide a model parameter"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "Missing required parameter: 'messages'."
    for at, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            return f"Invalid value for 'messages[{at}].role'."
    return _unanswered(messages)


def ask(body: dict[str, Any]) -> Ask:
    options = body.get("stream_options") or {}
    return heard(
        [_line(message) for message in body["messages"]],
        model=body["model"],
        stream=body.get("stream") is True,
        include_usage=options.get("include_usage") is True,
    )


def reel(script: Script, ask: Ask, answer_id: str) -> Reel:
    """Every frame encoded once; only the changing part of a chunk is dumped on its own."""
    lead = orjson.dumps(_lead(ask, answer_id, "chat.completion.chunk"))[:-1]
    before, after = b"data: " + lead + b',"choices":[{"index":0,"delta":', b"}]}\n\n"
    open_end = b',"finish_reason":null' + after

    def delta(value: dict[str, Any]) -> bytes:
        return before + orjson.dumps(value) + open_end

    thoughts = [delta({"reasoning_content": text}) for text in pieces(script.reasoning, None)]
    said = pieces(script.answer, script.chunks)
    spoken = [before + b'{"content":' + orjson.dumps(text) + b"}" + open_end for text in said]
    asked = [
        delta({"tool_calls": [part]})
        for at, call in enumerate(script.calls)
        for part in _fragments(at, call, answer_id)
    ]
    reason = b'{},"finish_reason":' + orjson.dumps(_finish(script))
    usage = b',"choices":[],"usage":' + orjson.dumps(_usage(script, ask)) + b"}\n\n"
    return Reel(
        head=(delta({"role": "assistant", "content": ""}),),
        chunks=(*thoughts, *spoken, *asked),
        tail=(
            before + reason + after,
            *([b"data: " + lead + usage] if ask.include_usage else []),
            _DONE,
        ),
        malformed=before + b'{"content": "bro\n\n',
        failure=b"data: " + error(Refusal(500, "The simulated provider broke off")) + b"\n\n",
    )


def whole(script: Script, ask: Ask, answer_id: str) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": script.answer or None}
    if script.reasoning:
        message["reasoning_content"] = script.reasoning
    if script.calls:
        message["tool_calls"] = [_call(at, call, answer_id) for at, call in enumerate(script.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(script)}
    answer = _lead(ask, answer_id, "chat.completion")
    return orjson.dumps(answer | {"choices": [choice], "usage": _usage(script, ask)})


def error(refusal: Refusal) -> bytes:
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(refusal.status)
    if kind is None:
        kind = "invalid_request_error" if refusal.status < 500 else "server_error"  # noqa: PLR2004
    said = {"message": refusal.message, "type": kind, "param": None, "code": refusal.code}
    return orjson.dumps({"error": said})


def _unanswered(messages: Sequence[dict[str, Any]]) -> str | None:
    """Every call must be answered by the tool messages right behind it, and only those."""
    waiting: set[str] = set()
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"messages[{at}]: a 'tool' message must follow its 'tool_calls'."
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return f"messages[{at}]: tool_call_ids without a response: {', '.join(sorted(waiting))}"
        else:
            waiting = {call.get("id") for call in message.get("tool_calls") or ()}
    return f"tool_call_ids without a response: {', '.join(sorted(waiting))}" if waiting else None


def _line(message: dict[str, Any]) -> Line:
    role: Any = "system" if message["role"] == "developer" else message["role"]
    return Line(role, text_of(message.get("content")), len(message.get("tool_calls") or ()))


def _lead(ask: Ask, answer_id: str, kind: str) -> dict[str, Any]:
    return {"id": answer_id, "object": kind, "created": _CREATED, "model": ask.model}


def _finish(script: Script) -> str:
    return script.finish or ("tool_calls" if script.calls else "stop")


def _call(at: int, call: Call, answer_id: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": f"call_{answer_id[-12:]}_{at}", "type": "function", "function": function}


def _fragments(at: int, call: Call, answer_id: str) -> list[dict[str, Any]]:
    """The call's head, then its arguments in two fragments."""
    opened = {"index": at, **_call(at, Call(call.name, ""), answer_id)}
    parts = pieces(call.arguments, 2)
    return [opened, *({"index": at, "function": {"arguments": part}} for part in parts)]


def _usage(script: Script, ask: Ask) -> dict[str, Any]:
    tally = tallied(script, ask)
    return {
        "prompt_tokens": tally.prompt,
        "completion_tokens": tally.output,
        "total_tokens": tally.prompt + tally.output,
        "prompt_tokens_details": {"cached_tokens": tally.cached},
        "completion_tokens_details": {"reasoning_tokens": tally.thought},
    }
