"""Tool calls for tests: provider replies with calls, their results, and the tools service."""

import asyncio
import json
from typing import Any

from starlette.responses import Response

from fairlead_schema import subjects
from fairlead_schema.events import (
    SessionEvent,
    ToolSucceeded,
)
from fairlead_schema.tools.content import Executor, TextContent
from fairlead_schema.tools.request import ToolCatalog, ToolInfo
from services.runner.tests.conftest import (
    World,
    stream_reply,
)

READ = ToolInfo(name="read", description="reads", input_schema={}, retry="pure", revision="read@1")

WRITE = READ.model_copy(update={"name": "write", "retry": "once", "revision": "write@1"})


def call_reply(*ids: str, tool: str = "read") -> Response:
    tool_calls = [
        {"index": n, "id": id_, "function": {"name": tool, "arguments": '{"path": "x"}'}}
        for n, id_ in enumerate(ids)
    ]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"tool_calls": tool_calls}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    return stream_reply(*(json.dumps(chunk) for chunk in chunks), "[DONE]")


def tool_succeeded(event: SessionEvent, call: str = "c1") -> ToolSucceeded:
    return ToolSucceeded(
        assistant_message_id=event.assistant_message_id,  # type: ignore[union-attr]
        call_id=call,
        structured={},
        content=(TextContent(text="found"),),
        provider=Executor(),
    )


def offer_tool(world: World, tool: ToolInfo = READ) -> None:
    """Let the tools service offer one tool."""
    body = json.dumps({"data": ToolCatalog(tools=(tool,)).wire()}).encode()

    async def answer(_body: bytes) -> bytes:
        return body

    world.eventlog.requests.answerers[subjects.tool_catalog("default")] = answer  # type: ignore[attr-defined]


async def wait_for_event(world: World, type_: str, *, count: int = 1) -> SessionEvent:
    """The last of so many events of a type, as soon as the log has it."""
    events: list[SessionEvent] = []

    async def look() -> bool:
        events[:] = [event for event in await world.events() if event.type == type_]
        return len(events) >= count

    async with asyncio.timeout(5):
        while not await look():
            await asyncio.sleep(0.001)
    return events[count - 1]
