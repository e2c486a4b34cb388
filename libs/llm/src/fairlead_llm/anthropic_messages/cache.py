"""Cache breakpoints on the stable prefix: tools, system, then the latest user message (O-27)."""

from collections.abc import Iterable
from typing import Any

from fairlead_llm.anthropic_messages.metadata import Block

MARKS_MAX = 4


def mark_breakpoints(body: dict[str, Any], hint: object) -> dict[str, Any]:
    """Mark the last tool, the last system part and the latest user message as breakpoints.

    The API refuses more than four breakpoints, including those of the options; tools come first.
    Tool results are user messages too, so each turn of a tool loop reads the cache of the last.
    """
    if hint is False:
        return body
    mark = {"type": "ephemeral"} | ({"ttl": hint} if isinstance(hint, str) else {})
    marks_left = MARKS_MAX - _count_marks(body)
    new_body = dict(body)
    for name in ("tools", "system"):
        if marks_left > 0 and _can_mark_last(new_body.get(name) or ()):
            new_body[name] = [*new_body[name][:-1], new_body[name][-1] | {"cache_control": mark}]
            marks_left -= 1
    if marks_left > 0:
        new_body["messages"] = _mark_latest_user_message(body["messages"], mark)
    return new_body


def _mark_latest_user_message(messages: list[dict[str, Any]], mark: Block) -> list[dict[str, Any]]:
    users = (i for i in reversed(range(len(messages))) if messages[i]["role"] == "user")
    at = next(users, None)
    if at is None or not _can_mark_last(messages[at]["content"]):
        return messages
    content = messages[at]["content"]
    message = {"role": "user", "content": [*content[:-1], content[-1] | {"cache_control": mark}]}
    return [*messages[:at], message, *messages[at + 1 :]]


def _can_mark_last(blocks: Iterable[Block]) -> bool:
    """Whether there is a last block to mark. A tool with deferred loading cannot be new_body."""
    last = list(blocks)[-1:]
    return bool(last) and "cache_control" not in last[0] and not last[0].get("defer_loading")


def _count_marks(body: dict[str, Any]) -> int:
    contents = [block for message in body["messages"] for block in message["content"]]
    blocks = [*(body.get("tools") or ()), *(body.get("system") or ()), *contents]
    return sum("cache_control" in block for block in blocks)
