"""What a Responses request asks, and why the API would refuse it."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from fairlead_cli.sim.conversation import Line, heard, text_of
from fairlead_cli.sim.script import Ask
from fairlead_cli.sim.seal import opened

Item: TypeAlias = dict[str, Any]

CACHE_KEY_LENGTH_MAX = 64
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_INPUT = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_OUTPUT = frozenset({"output_text", "refusal"})


def complaint(body: object) -> str | None:
    if not isinstance(body, dict):
        return "We could not parse the JSON body of your request."
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "Missing required parameter: 'model'."
    given = body.get("input")
    if not isinstance(given, list | str) or not given:
        return "Missing required parameter: 'input'."
    if len(str(body.get("prompt_cache_key") or "")) > CACHE_KEY_LENGTH_MAX:
        return "Invalid 'prompt_cache_key': string too long. Expected at most 64 characters."
    if body.get("previous_response_id"):
        return f"Previous response with id '{body['previous_response_id']}' not found."
    items = _items(body)
    for at, item in enumerate(items):
        if told := _shape(at, item):
            return told
    return _answers(items) or _reasoning(items)


def ask(body: dict[str, Any]) -> Ask:
    instructions = Line("system", text_of(body.get("instructions")))
    lines = [_line(item) for item in _items(body)]
    return heard([instructions, *lines], model=body["model"], stream=body.get("stream") is True)


def _items(body: dict[str, Any]) -> list[Item]:
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _line(item: Item) -> Line:
    kind = item.get("type", "message")
    if kind == "message":
        role: Any = "system" if item["role"] == "developer" else item["role"]
        return Line(role, text_of(item.get("content")))
    if kind.endswith("_output"):
        return Line("tool", text_of(item.get("output")))
    return Line("assistant", calls=int(kind == "function_call"))


def _shape(at: int, item: object) -> str | None:
    if not isinstance(item, dict):
        return f"Invalid type for 'input[{at}]': expected an object."
    kind = item.get("type", "message")
    if not isinstance(kind, str):
        return f"Invalid type for 'input[{at}].type'."
    if kind != "message":
        return None
    if item.get("role") not in _ROLES:
        return f"Invalid value for 'input[{at}].role'."
    content = item.get("content")
    taken = _OUTPUT if item["role"] == "assistant" else _INPUT
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict) or part.get("type") not in taken:
            supported = ", ".join(f"'{name}'" for name in sorted(taken))
            return (
                f"Invalid value for 'input[{at}].content[{index}].type'. "
                f"Supported values are: {supported}."
            )
    return None if isinstance(content, list | str) else f"Missing 'input[{at}].content'."


def _answers(items: Sequence[Item]) -> str | None:
    """Every output answers a call before it, and every call has an output."""
    called: set[object] = set()
    waiting: dict[object, None] = {}
    for item in items:
        kind, call_id = item.get("type"), item.get("call_id")
        if kind in {"function_call", "custom_tool_call"}:
            called.add(call_id)
            waiting[call_id] = None
        elif kind in {"function_call_output", "custom_tool_call_output"}:
            if call_id not in called:
                return f"No tool call found for function call output with call_id {call_id}."
            waiting.pop(call_id, None)
    missing = next(iter(waiting), None)
    return f"No tool output found for function call {missing}." if waiting else None


def _reasoning(items: Sequence[Item]) -> str | None:
    """Reasoning comes back as it was given, before the item that it led to."""
    for at, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        name = item.get("id", f"input[{at}]")
        content = item.get("encrypted_content")
        if not content:
            return f"Item with id '{name}' not found. Items are not persisted when store is false."
        if opened(content) is None:
            return f"The encrypted content for item {name} could not be verified."
        after = next((one for one in items[at + 1 :] if one.get("type") != "reasoning"), None)
        if after is None or not _made(after):
            return (
                f"Item '{name}' of type 'reasoning' was provided without its required "
                "following item."
            )
    return None


def _made(item: Item) -> bool:
    """Whether the model made the item."""
    kind = item.get("type", "message")
    return item.get("role") == "assistant" if kind == "message" else not kind.endswith("_output")
