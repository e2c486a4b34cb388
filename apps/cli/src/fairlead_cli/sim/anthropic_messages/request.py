"""What a Messages request asks."""

from typing import Any

from fairlead_cli.sim.conversation import Line, heard, text_of
from fairlead_cli.sim.script import Ask


def ask(body: dict[str, Any]) -> Ask:
    system = Line("system", text_of(body.get("system")))
    lines = [line for message in body["messages"] for line in _lines(message)]
    return heard([system, *lines], model=body["model"], stream=body.get("stream") is True)


def _lines(message: dict[str, Any]) -> list[Line]:
    """A user message's tool results come before its text."""
    content = message["content"]
    blocks = content if isinstance(content, list) else []
    if message["role"] == "user":
        results = [block for block in blocks if block.get("type") == "tool_result"]
        tools = [Line("tool", text_of(block.get("content"))) for block in results]
        return [*tools, Line("user", text_of(content, "text"))]
    calls = sum(block.get("type") == "tool_use" for block in blocks)
    return [Line(message["role"], text_of(content, "text"), calls)]
