"""Pruning: one durable step that makes a request smaller before any compaction."""

import json
from typing import Any

from prometheus_client import REGISTRY
from starlette.responses import Response

from fairlead_schema import subjects
from fairlead_schema.events import CompactionStarted, ContextPruned, ToolSucceeded
from fairlead_schema.tools.content import Executor, TextContent
from fairlead_schema.tools.request import ToolCatalog, ToolInfo
from services.runner.tests.conftest import World, admitted, events_of, stream_reply, text_reply

READ = ToolInfo(name="read", description="reads", input_schema={}, retry="pure", revision="read@1")
BIG = "x" * 12_000


def call_reply(id_: str) -> Response:
    tool_calls = [
        {"index": 0, "id": id_, "function": {"name": "read", "arguments": '{"path": "x"}'}}
    ]
    chunk: dict[str, Any] = {
        "choices": [{"delta": {"tool_calls": tool_calls}, "finish_reason": "tool_calls"}]
    }
    return stream_reply(json.dumps(chunk), "[DONE]")


def offer_tool(world: World) -> None:
    body = json.dumps({"data": ToolCatalog(tools=(READ,)).wire()}).encode()

    async def answer(_body: bytes) -> bytes:
        return body

    world.eventlog.requests.answerers[subjects.tool_catalog("default")] = answer  # type: ignore[attr-defined]


async def read_large_file(world: World, number: int) -> None:
    """One activity with a large tool output."""
    world.provider.replies.extend([call_reply(f"call_{number}"), text_reply("read it")])
    await world.write(admitted(f"msg_{number}", "read"))
    await world.drain()
    (call,) = (await world.session()).calls
    settled = ToolSucceeded(
        assistant_message_id=call.assistant_message_id,
        call_id=call.call_id,
        structured={},
        content=(TextContent(text=BIG),),
        provider=Executor(),
    )
    await world.write(settled)
    await world.drain()


def count_breaks(source: str) -> float:
    return REGISTRY.get_sample_value("fairlead_prefix_breaks_total", {"source": source}) or 0.0


async def test_pruning_comes_before_compaction_and_breaks_the_prefix_once(small: World) -> None:
    """P-07, G-40: old outputs become references once; the requests after it are stable again."""
    small.config["runner"] = {"tools_wait_s": 0.01}
    small.config["compaction"] |= {"prune_turns": 1, "prune_bytes": 1_000}
    offer_tool(small)
    before = count_breaks("pruning"), count_breaks("messages")

    await read_large_file(small, 1)
    await read_large_file(small, 2)
    await small.prompt("msg_3", "And now?")

    events = await small.events()
    assert len(events_of(events, ContextPruned)) == 1
    assert events_of(events, CompactionStarted) == []
    request = json.dumps(small.provider.requests[-1])
    assert request.count(BIG) == 1
    assert "bytes was left out here" in request
    assert (count_breaks("pruning"), count_breaks("messages")) == (before[0] + 1, before[1])


async def test_switched_off_it_is_a_compaction(small: World) -> None:
    """G-40."""
    small.config["runner"] = {"tools_wait_s": 0.01}
    small.config["compaction"]["prune_turns"] = 0
    offer_tool(small)

    await read_large_file(small, 1)
    await read_large_file(small, 2)

    events = await small.events()
    assert events_of(events, ContextPruned) == []
    assert len(events_of(events, CompactionStarted)) == 1
