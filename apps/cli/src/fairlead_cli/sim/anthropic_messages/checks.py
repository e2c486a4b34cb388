"""Why the Messages API would refuse a request."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from fairlead_cli.sim.seal import genuine

Message: TypeAlias = dict[str, Any]

CACHED_BLOCKS_MAX = 4
_ROLES = frozenset({"user", "assistant", "system"})


def complaint(body: object) -> str | None:
    if not isinstance(body, dict):
        return "The request body is not valid JSON"
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "model: Field required"
    most = body.get("max_tokens")
    if not isinstance(most, int) or most < 1:
        return "max_tokens: Field required"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    for at, message in enumerate(messages):
        if told := _shape(at, message):
            return told
    checks: tuple[Callable[[Message], str | None], ...] = (
        *(_order, _prefilled, _tools, _signatures, _thinking, _cached),
    )
    return next((told for check in checks if (told := check(body))), None)


def _shape(at: int, message: object) -> str | None:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        return f"messages.{at}.role: Input should be 'user', 'assistant' or 'system'"
    content = message.get("content")
    if not isinstance(content, list | str):
        return f"messages.{at}.content: Field required"
    for index, block in enumerate(_blocks(message)):
        if not isinstance(block.get("type"), str):
            return f"messages.{at}.content.{index}.type: Field required"
        if block["type"] == "text" and not block.get("text"):
            return "messages: text content blocks must be non-empty"
    if isinstance(content, list) and not all(isinstance(block, dict) for block in content):
        return f"messages.{at}.content: Input should be a list of objects"
    return None if content else f"messages.{at}: all messages must have non-empty content"


def _order(body: Message) -> str | None:
    """Users and assistants take turns; a system message only follows what the model reads."""
    messages = body["messages"]
    if messages[0]["role"] != "user":
        return (
            "messages.0: use the top-level 'system' parameter"
            if messages[0]["role"] == "system"
            else 'messages: first message must use the "user" role'
        )
    for at, (before, after) in enumerate(pairwise(messages), start=1):
        if after["role"] == "system" and (before["role"] == "system" or not _readable(before)):
            return f"messages.{at}: role 'system' must follow a user turn"
        if before["role"] == "system" and after["role"] != "assistant":
            return f"messages.{at}: role 'system' must be last or be followed by an assistant turn"
        if before["role"] == after["role"]:
            role = after["role"]
            return (
                'messages: roles must alternate between "user" and "assistant", '
                f'but found multiple "{role}" roles in a row'
            )
    return None


def _prefilled(body: Message) -> str | None:
    """Nobody begins an answer for the model; only work of hosted tools that it paused comes last."""
    last = body["messages"][-1]
    if last["role"] != "assistant" or (_blocks(last) and _blocks(last)[-1]["type"] != "text"):
        return None
    return (
        "This model does not support assistant message prefill. The conversation must end with a "
        "user message."
    )


def _readable(message: Message) -> bool:
    last = (_blocks(message) or [{}])[-1]
    return message["role"] == "user" or str(last.get("type", "")).endswith("_tool_result")


def _tools(body: Message) -> str | None:
    """Every tool use is answered in the next message, first in it, and nothing else is."""
    asked: list[str] = []
    for at, message in enumerate([*body["messages"], {"role": "end", "content": []}]):
        answers = [block for block in _blocks(message) if block["type"] == "tool_result"]
        for index, answer in enumerate(answers):
            if answer.get("tool_use_id") not in asked:
                return (
                    f"messages.{at}.content.{index}: unexpected `tool_use_id` found in "
                    f"`tool_result` blocks: {answer.get('tool_use_id')}. Each `tool_result` block "
                    "must have a corresponding `tool_use` block in the previous message."
                )
        if missing := _missing(asked, _blocks(message)):
            return (
                f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
                "corresponding `tool_result` block in the next message."
            )
        asked = [str(block.get("id")) for block in _blocks(message) if block["type"] == "tool_use"]
    return None


def _missing(asked: Sequence[str], blocks: Sequence[Message]) -> list[str]:
    """The calls that the leading results of the next message leave open."""
    first = next(
        (at for at, block in enumerate(blocks) if block["type"] != "tool_result"), len(blocks)
    )
    answered = {block.get("tool_use_id") for block in blocks[:first]}
    return [one for one in asked if one not in answered]


def _signatures(body: Message) -> str | None:
    for at, message in enumerate(body["messages"]):
        for index, block in enumerate(_blocks(message)):
            if block["type"] == "thinking" and not genuine(
                str(block.get("thinking")), block.get("signature")
            ):
                return f"messages.{at}.content.{index}: Invalid `signature` in `thinking` block"
    return None


def _thinking(body: Message) -> str | None:
    """With a budget for thinking, a tool use that was thought about comes back with its thought.

    The ids of such calls say so: nothing is remembered between requests.
    """
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return None
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < 1024:  # noqa: PLR2004 - the API's own minimum
        return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    if budget >= body["max_tokens"]:
        return "`max_tokens` must be greater than `thinking.budget_tokens`."
    for at, message in enumerate(body["messages"]):
        kinds = [block["type"] for block in _blocks(message)]
        thought = any("_thought_" in str(block.get("id")) for block in _blocks(message))
        if thought and "thinking" not in kinds and "redacted_thinking" not in kinds:
            return (
                f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, "
                f"but found `{kinds[0]}`."
            )
    return None


def _cached(body: Message) -> str | None:
    marked = sum("cache_control" in held for held in _objects(body))
    if marked <= CACHED_BLOCKS_MAX:
        return None
    return f"A maximum of 4 blocks with cache_control may be provided. Found {marked}."


def _objects(value: object) -> Iterator[Message]:
    if isinstance(value, dict):
        yield value
        for held in value.values():
            yield from _objects(held)
    elif isinstance(value, list):
        for held in value:
            yield from _objects(held)


def _blocks(message: Message) -> list[Message]:
    content = message["content"]
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
