"""Parses a request of the Responses API, with the checks by which the API refuses one."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from fairlead_cli.sim.conversation import ConversationMessage, build_request, text_of
from fairlead_cli.sim.script import SimRequest
from fairlead_cli.sim.signatures import unseal

Item: TypeAlias = dict[str, Any]

CACHE_KEY_LENGTH_MAX = 64
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_INPUT = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_OUTPUT = frozenset({"output_text", "refusal"})


def refusal_reason(body: object) -> str | None:
    if not isinstance(body, dict):
        return "We could not parse the JSON body of your request."
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "Missing required parameter: 'model'."
    input_ = body.get("input")
    if not isinstance(input_, list | str) or not input_:
        return "Missing required parameter: 'input'."
    if len(str(body.get("prompt_cache_key") or "")) > CACHE_KEY_LENGTH_MAX:
        return "Invalid 'prompt_cache_key': string too long. Expected at most 64 characters."
    if body.get("previous_response_id"):
        return f"Previous response with id '{body['previous_response_id']}' not found."
    items = _items(body)
    for index, item in enumerate(items):
        if reason := _check_shape(index, item):
            return reason
    return _check_outputs(items) or _check_reasoning(items)


def parse_request(body: dict[str, Any]) -> SimRequest:
    instructions = ConversationMessage("system", text_of(body.get("instructions")))
    messages = [_to_message(item) for item in _items(body)]
    return build_request(
        [instructions, *messages], model=body["model"], stream=body.get("stream") is True
    )


def _items(body: dict[str, Any]) -> list[Item]:
    input_ = body["input"]
    return [{"role": "user", "content": input_}] if isinstance(input_, str) else input_


def _to_message(item: Item) -> ConversationMessage:
    kind = item.get("type", "message")
    if kind == "message":
        role: Any = "system" if item["role"] == "developer" else item["role"]
        return ConversationMessage(role, text_of(item.get("content")))
    if kind.endswith("_output"):
        return ConversationMessage("tool", text_of(item.get("output")))
    return ConversationMessage("assistant", calls=int(kind == "function_call"))


def _check_shape(index: int, item: object) -> str | None:
    if not isinstance(item, dict):
        return f"Invalid type for 'input[{index}]': expected an object."
    kind = item.get("type", "message")
    if not isinstance(kind, str):
        return f"Invalid type for 'input[{index}].type'."
    if kind != "message":
        return None
    if item.get("role") not in _ROLES:
        return f"Invalid value for 'input[{index}].role'."
    content = item.get("content")
    allowed = _OUTPUT if item["role"] == "assistant" else _INPUT
    for part_index, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict) or part.get("type") not in allowed:
            supported = ", ".join(f"'{name}'" for name in sorted(allowed))
            return (
                f"Invalid value for 'input[{index}].content[{part_index}].type'. "
                f"Supported values are: {supported}."
            )
    return None if isinstance(content, list | str) else f"Missing 'input[{index}].content'."


def _check_outputs(items: Sequence[Item]) -> str | None:
    """Every output follows its call, and every call has an output."""
    call_ids: set[object] = set()
    unanswered: dict[object, None] = {}
    for item in items:
        kind, call_id = item.get("type"), item.get("call_id")
        if kind in {"function_call", "custom_tool_call"}:
            call_ids.add(call_id)
            unanswered[call_id] = None
        elif kind in {"function_call_output", "custom_tool_call_output"}:
            if call_id not in call_ids:
                return f"No tool call found for function call output with call_id {call_id}."
            unanswered.pop(call_id, None)
    missing = next(iter(unanswered), None)
    return f"No tool output found for function call {missing}." if unanswered else None


def _check_reasoning(items: Sequence[Item]) -> str | None:
    """Reasoning must come back unaltered, before the item of the model that followed it."""
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        name = item.get("id", f"input[{index}]")
        content = item.get("encrypted_content")
        if not content:
            return f"Item with id '{name}' not found. Items are not persisted when store is false."
        if unseal(content) is None:
            return f"The encrypted content for item {name} could not be verified."
        next_item = next(
            (later for later in items[index + 1 :] if later.get("type") != "reasoning"), None
        )
        if next_item is None or not _is_by_model(next_item):
            return (
                f"Item '{name}' of type 'reasoning' was provided without its required "
                "following item."
            )
    return None


def _is_by_model(item: Item) -> bool:
    """Whether the model produced the item."""
    kind = item.get("type", "message")
    return item.get("role") == "assistant" if kind == "message" else not kind.endswith("_output")
