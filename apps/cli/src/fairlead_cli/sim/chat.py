"""Chat Completions as a server speaks it: checks like the real thing, frames, whole answers."""

import re
from collections.abc import Sequence
from typing import Any

import orjson

from fairlead_cli.sim.play import Reel
from fairlead_cli.sim.script import Ask, Call, Refusal, Script, pieces

_CREATED = 1_700_000_000
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_UPDATE = re.compile(r"<system-update>\n.*?\n</system-update>\n?", re.DOTALL)
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
    messages = body["messages"]
    at, said = _last_user(messages)
    after = messages[at + 1 :]
    tools = [message for message in after if message["role"] == "tool"]
    return Ask(
        model=body["model"],
        said=said,
        rounds=sum(1 for message in after if message.get("tool_calls")),
        tool_said=_text(tools[-1]) if tools else "",
        stream=body.get("stream") is True,
        include_usage=(body.get("stream_options") or {}).get("include_usage") is True,
        prompt_length=sum(len(_text(message)) for message in messages),
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
    usage = b',"choices":[],"usage":' + orjson.dumps(_usage(script, ask, len(said))) + b"}\n\n"
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
    said = len(pieces(script.answer, script.chunks))
    answer = _lead(ask, answer_id, "chat.completion")
    return orjson.dumps(answer | {"choices": [choice], "usage": _usage(script, ask, said)})


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


def _last_user(messages: Sequence[dict[str, Any]]) -> tuple[int, str]:
    """Where the user last spoke. System updates and tools' media come as user messages too."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "user":
            said = _UPDATE.sub("", _text(messages[at])).strip()
            if said:
                return at, said
    return -1, ""


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(text for text in parts if isinstance(text, str))
    return content if isinstance(content, str) else ""


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


def _usage(script: Script, ask: Ask, chunks: int) -> dict[str, Any]:
    tokens = script.tokens
    thought = len(pieces(script.reasoning, None))
    prompt = tokens.input if tokens.input is not None else max(1, ask.prompt_length // 4)
    completion = tokens.output if tokens.output is not None else chunks + thought
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": min(thought, completion)},
    }
