"""Parses a request of the Messages API."""

from typing import Any

from fairlead_cli.sim.conversation import ConversationMessage, build_request, text_of
from fairlead_cli.sim.script import SimRequest


def parse_request(body: dict[str, Any]) -> SimRequest:
    system = ConversationMessage("system", text_of(body.get("system")))
    messages = [item for message in body["messages"] for item in _to_messages(message)]
    return build_request(
        [system, *messages], model=body["model"], stream=body.get("stream") is True
    )


def _to_messages(message: dict[str, Any]) -> list[ConversationMessage]:
    """Split one message: each tool result becomes a message of its own, before the text."""
    content = message["content"]
    blocks = content if isinstance(content, list) else []
    if message["role"] == "user":
        results = [block for block in blocks if block.get("type") == "tool_result"]
        tools = [ConversationMessage("tool", text_of(block.get("content"))) for block in results]
        return [*tools, ConversationMessage("user", text_of(content, "text"))]
    calls = sum(block.get("type") == "tool_use" for block in blocks)
    return [ConversationMessage(message["role"], text_of(content, "text"), calls)]
