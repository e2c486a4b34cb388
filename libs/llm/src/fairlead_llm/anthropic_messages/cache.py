"""Cache breakpoints on the stable prefix: tools, then system, then what was said last (O-27)."""

from collections.abc import Iterable
from typing import Any

from fairlead_llm.anthropic_messages.native import Block

MARKS_MAX = 4


def marked(body: dict[str, Any], hint: object) -> dict[str, Any]:
    """The body with breakpoints on its last tool, last system part and latest user message.

    The provider refuses more than four: marks that are there already count, and tools come first.
    A tool result is a user's message too, so a tool loop reads what it wrote a turn ago.
    """
    if hint is False:
        return body
    mark = {"type": "ephemeral"} | ({"ttl": hint} if isinstance(hint, str) else {})
    left = MARKS_MAX - _marks(body)
    marked = dict(body)
    for name in ("tools", "system"):
        if left > 0 and _open(marked.get(name) or ()):
            marked[name] = [*marked[name][:-1], marked[name][-1] | {"cache_control": mark}]
            left -= 1
    if left > 0:
        marked["messages"] = _latest_marked(body["messages"], mark)
    return marked


def _latest_marked(messages: list[dict[str, Any]], mark: Block) -> list[dict[str, Any]]:
    at = next((i for i in reversed(range(len(messages))) if messages[i]["role"] == "user"), None)
    if at is None or not _open(messages[at]["content"]):
        return messages
    content = messages[at]["content"]
    message = {"role": "user", "content": [*content[:-1], content[-1] | {"cache_control": mark}]}
    return [*messages[:at], message, *messages[at + 1 :]]


def _open(blocks: Iterable[Block]) -> bool:
    """Whether there is a last block that may be marked; a tool loaded later may not."""
    last = list(blocks)[-1:]
    return bool(last) and "cache_control" not in last[0] and not last[0].get("defer_loading")


def _marks(body: dict[str, Any]) -> int:
    said = [block for message in body["messages"] for block in message["content"]]
    given = [*(body.get("tools") or ()), *(body.get("system") or ()), *said]
    return sum("cache_control" in block for block in given)
