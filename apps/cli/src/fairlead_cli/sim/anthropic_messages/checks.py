"""The checks by which the Messages API refuses a request."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from fairlead_cli.sim.signatures import is_genuine

Message: TypeAlias = dict[str, Any]

CACHED_BLOCKS_MAX = 4
_ROLES = frozenset({"user", "assistant", "system"})


def refusal_reason(body: object) -> str | None:
    if not isinstance(body, dict):
        return "The request body is not valid JSON"
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "model: Field required"
    max_tokens = body.get("max_tokens")
    if not isinstance(max_tokens, int) or max_tokens < 1:
        return "max_tokens: Field required"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    for index, message in enumerate(messages):
        if reason := _check_shape(index, message):
            return reason
    checks: tuple[Callable[[Message], str | None], ...] = (
        *(
            _check_order,
            _check_prefill,
            _check_tools,
            _check_signatures,
            _check_thinking,
            _check_cache_marks,
        ),
    )
    return next((reason for check in checks if (reason := check(body))), None)


def _check_shape(index: int, message: object) -> str | None:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        return f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'"
    content = message.get("content")
    if not isinstance(content, list | str):
        return f"messages.{index}.content: Field required"
    for block_index, block in enumerate(_blocks(message)):
        if not isinstance(block.get("type"), str):
            return f"messages.{index}.content.{block_index}.type: Field required"
        if block["type"] == "text" and not block.get("text"):
            return "messages: text content blocks must be non-empty"
    if isinstance(content, list) and not all(isinstance(block, dict) for block in content):
        return f"messages.{index}.content: Input should be a list of objects"
    return None if content else f"messages.{index}: all messages must have non-empty content"


def _check_order(body: Message) -> str | None:
    """Roles alternate. A system message follows a user turn or a hosted tool's result."""
    messages = body["messages"]
    if messages[0]["role"] != "user":
        return (
            "messages.0: use the top-level 'system' parameter"
            if messages[0]["role"] == "system"
            else 'messages: first message must use the "user" role'
        )
    for index, (before, after) in enumerate(pairwise(messages), start=1):
        if after["role"] == "system" and (before["role"] == "system" or not _is_readable(before)):
            return f"messages.{index}: role 'system' must follow a user turn"
        if before["role"] == "system" and after["role"] != "assistant":
            return (
                f"messages.{index}: role 'system' must be last or be followed by an assistant turn"
            )
        if before["role"] == after["role"]:
            role = after["role"]
            return (
                'messages: roles must alternate between "user" and "assistant", '
                f'but found multiple "{role}" roles in a row'
            )
    return None


def _check_prefill(body: Message) -> str | None:
    """The last message may not be the assistant's text; an unfinished hosted tool may come last."""
    last = body["messages"][-1]
    if last["role"] != "assistant" or (_blocks(last) and _blocks(last)[-1]["type"] != "text"):
        return None
    return (
        "This model does not support assistant message prefill. The conversation must end with a "
        "user message."
    )


def _is_readable(message: Message) -> bool:
    last = (_blocks(message) or [{}])[-1]
    return message["role"] == "user" or str(last.get("type", "")).endswith("_tool_result")


def _check_tools(body: Message) -> str | None:
    """The next message begins with a result for every tool use, and has no other results."""
    call_ids: list[str] = []
    for index, message in enumerate([*body["messages"], {"role": "end", "content": []}]):
        answers = [block for block in _blocks(message) if block["type"] == "tool_result"]
        for block_index, answer in enumerate(answers):
            if answer.get("tool_use_id") not in call_ids:
                return (
                    f"messages.{index}.content.{block_index}: unexpected `tool_use_id` found in "
                    f"`tool_result` blocks: {answer.get('tool_use_id')}. Each `tool_result` block "
                    "must have a corresponding `tool_use` block in the previous message."
                )
        if missing := _unanswered_calls(call_ids, _blocks(message)):
            return (
                f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
                "corresponding `tool_result` block in the next message."
            )
        call_ids = [
            str(block.get("id")) for block in _blocks(message) if block["type"] == "tool_use"
        ]
    return None


def _unanswered_calls(call_ids: Sequence[str], blocks: Sequence[Message]) -> list[str]:
    """The calls without a result among the leading blocks of the next message."""
    results_end = next(
        (index for index, block in enumerate(blocks) if block["type"] != "tool_result"),
        len(blocks),
    )
    answered_ids = {block.get("tool_use_id") for block in blocks[:results_end]}
    return [call_id for call_id in call_ids if call_id not in answered_ids]


def _check_signatures(body: Message) -> str | None:
    for index, message in enumerate(body["messages"]):
        for block_index, block in enumerate(_blocks(message)):
            if block["type"] == "thinking" and not is_genuine(
                str(block.get("thinking")), block.get("signature")
            ):
                return f"messages.{index}.content.{block_index}: Invalid `signature` in `thinking` block"
    return None


def _check_thinking(body: Message) -> str | None:
    """With a thinking budget, a tool use that followed thinking must come back with that thinking.

    The id of such a call contains `_thought_`, because the simulator keeps no state between requests.
    """
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return None
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < 1024:  # noqa: PLR2004 - the API's own minimum
        return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    if budget >= body["max_tokens"]:
        return "`max_tokens` must be greater than `thinking.budget_tokens`."
    for index, message in enumerate(body["messages"]):
        kinds = [block["type"] for block in _blocks(message)]
        has_thought_call = any("_thought_" in str(block.get("id")) for block in _blocks(message))
        if has_thought_call and "thinking" not in kinds and "redacted_thinking" not in kinds:
            return (
                f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, "
                f"but found `{kinds[0]}`."
            )
    return None


def _check_cache_marks(body: Message) -> str | None:
    count = sum("cache_control" in value for value in _objects(body))
    if count <= CACHED_BLOCKS_MAX:
        return None
    return f"A maximum of 4 blocks with cache_control may be provided. Found {count}."


def _objects(value: object) -> Iterator[Message]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)


def _blocks(message: Message) -> list[Message]:
    content = message["content"]
    return (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )
