"""Calls that are no function calls: which of them Fairlead answers, and what the others return.

Some hosted calls have their result in an item of its own, with the same call id.
"""

from dataclasses import replace

from fairlead_llm.calls.arguments import parse_arguments
from fairlead_llm.openai_responses.open_item import Events, Json, OpenItem, text_or_none
from fairlead_schema.provider.events import ToolCall, ToolInputEnd, ToolResult

# Calls that Fairlead answers, besides function calls.
_LOCAL_CALLS = frozenset(
    {"custom_tool_call", "local_shell_call", "apply_patch_call", "computer_call"}
)
_FAILED_STATES = frozenset({"failed", "incomplete"})
_UNFINISHED = "The provider ended its answer before this call was complete"
# The items that hold the result of an earlier item, by the type of that item.
OUTPUT_TYPES = {
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "computer_call": "computer_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "function_call": "function_call_output",
}
_OUTPUTS = frozenset(OUTPUT_TYPES.values())


def is_output(item: Json) -> bool:
    """Whether an item is the result of an earlier item, with the same call id."""
    return str(item.get("type")) in _OUTPUTS


def awaits_our_result(open_item: OpenItem, item: Json) -> bool:
    """Whether the item is a call that Fairlead answers."""
    if open_item.type == "shell_call":
        environment = item.get("environment")
        return not isinstance(environment, dict) or environment.get("type") == "local"
    if open_item.type == "tool_search_call":
        return item.get("execution") == "client"
    return open_item.type == "function_call" or open_item.type in _LOCAL_CALLS


def end_native_call(open_item: OpenItem, item: Json | None) -> Events:
    """End a call that is no function call. The item of a hosted call holds its result."""
    input_end = ToolInputEnd(open_item.id)
    if item is None:
        return (input_end, *_end_unfinished(open_item))
    if awaits_our_result(open_item, item):
        metadata = {"item_id": open_item.item_id, "item": item}
        return input_end, ToolCall(
            open_item.id, open_item.name, _call_input(item), metadata=metadata
        )
    metadata = {"item_id": open_item.item_id or open_item.id}
    call = ToolCall(
        open_item.id, open_item.name, _call_input(item), executed=True, metadata=metadata
    )
    if open_item.type in OUTPUT_TYPES:
        # The result is an item of its own. Both items go back unchanged.
        return input_end, replace(call, metadata=metadata | {"item": item})
    return input_end, call, _hosted_result(open_item.id, item, metadata)


def answer_hosted_call(open_item: OpenItem, output: Json | None, item: Json) -> Events:
    """The result of a hosted call: its output item, or the call's own item if none came."""
    metadata = {"item_id": open_item.item_id or open_item.id}
    return (_hosted_result(open_item.id, output or item, metadata),)


def _hosted_result(call_id: str, item: Json, metadata: Json) -> ToolResult:
    failed = text_or_none(item.get("status")) in _FAILED_STATES
    return ToolResult(call_id, item, failed, metadata)


def _end_unfinished(open_item: OpenItem) -> Events:
    """A call that never ended. A hosted one is an error without an item: no request repeats it."""
    if open_item.type in OUTPUT_TYPES:
        return (ToolCall(open_item.id, open_item.name, {}, invalid=_UNFINISHED),)
    metadata = {"item_id": open_item.item_id or open_item.id}
    return (
        ToolCall(open_item.id, open_item.name, {}, executed=True, metadata=metadata),
        ToolResult(open_item.id, {"error": _UNFINISHED}, error=True, metadata=metadata),
    )


def _call_input(item: Json) -> object:
    """The input of a call. Its name depends on the type of the item."""
    arguments = item.get("arguments")
    if isinstance(arguments, str):
        return parse_arguments(arguments)[0]
    for name in ("action", "operation", "arguments"):
        if isinstance(item.get(name), dict):
            return item[name]
    if item.get("type") == "custom_tool_call":
        return item.get("input")
    names = ("code", "queries", "server_label", "name")
    return {name: item[name] for name in names if item.get(name) is not None}
