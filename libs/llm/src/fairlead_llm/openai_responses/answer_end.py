"""The end of an answer: why it ended, what it used, and the items that never ended by themselves."""

from collections.abc import Mapping
from types import MappingProxyType

from fairlead_llm.openai_responses import usage
from fairlead_llm.openai_responses.open_item import Json, OpenItem
from fairlead_schema.provider.events import Finish, StepFinish

_INCOMPLETE: Mapping[str, Finish] = MappingProxyType(
    {"max_output_tokens": "length", "content_filter": "content-filter"}
)
_FINISH_METADATA = ("id", "model", "status", "incomplete_details", "usage")


def finish_step(response: Json, *, is_complete: bool, has_calls: bool) -> StepFinish:
    """The finish of a whole answer, or of one that the provider cut short."""
    if is_complete:
        reason: Finish = "tool-calls" if has_calls else "stop"
    else:
        reason = _incomplete_reason(response.get("incomplete_details"))
    metadata = {name: response[name] for name in _FINISH_METADATA if response.get(name) is not None}
    return StepFinish(reason, usage.read_usage(response.get("usage")), metadata or None)


def final_item(response: Json, index: int | None, open_item: OpenItem) -> Json | None:
    """The final form of an item that never ended by itself, from the whole answer."""
    items = response.get("output")
    if not isinstance(items, list) or index is None or not 0 <= index < len(items):
        return None
    item = items[index]
    is_same = isinstance(item, dict) and item.get("type") == open_item.type
    return item if is_same and item.get("status") != "in_progress" else None


def _incomplete_reason(details: object) -> Finish:
    if not isinstance(details, dict):
        return "unknown"
    return _INCOMPLETE.get(str(details.get("reason")), "unknown")
