"""The event streams: replay, follow, resume and heartbeats."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.deltas import MemoryDeltas
from fairlead_gateway.runtime import Runtime
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.delta import TextDelta
from fairlead_schema.events import ExecutionClaimed, InterruptRequested, SyntheticAdded
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from services.gateway.tests.conftest import Append, Listen

Chunks = asyncio.Queue[bytes]

EVENT = "/api/session/ses_1/event"
STREAM = "/api/session/ses_1/stream"
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")
CAUGHT_UP = b": caught-up\n\n"


def _note(index: int) -> SyntheticAdded:
    return SyntheticAdded(message_id=f"msg_{index}", text=f"said\n{index}")


async def _next(chunks: Chunks) -> bytes:
    return await asyncio.wait_for(chunks.get(), 2)


def _parse(chunk: bytes) -> tuple[int | None, dict[str, Any]]:
    *ids, data = chunk.decode().removesuffix("\n\n").split("\n")
    seq = int(ids[0].removeprefix("id: ")) if ids else None
    return seq, json.loads(data.removeprefix("data: "))


async def test_h30_a_stream_replays_says_it_caught_up_and_goes_on(
    append: Append, listen: Listen
) -> None:
    await append("ses_1", _note(1), CLAIMED)

    async with listen(EVENT) as chunks:
        seq, event = _parse(await _next(chunks))
        assert (seq, event["durable"]["seq"], event["data"]["text"]) == (2, 2, "said\n1")
        assert await _next(chunks) == CAUGHT_UP
        await append("ses_1", CLAIMED, InterruptRequested())
        await append("ses_1", _note(2))
        assert _parse(await _next(chunks))[0] == 6


async def test_i37_a_stream_omits_what_is_not_public(append: Append, listen: Listen) -> None:
    await append("ses_1", CLAIMED, InterruptRequested())

    async with listen(EVENT) as chunks:
        assert await _next(chunks) == CAUGHT_UP


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("after=2", {}),
        ("", {"Last-Event-ID": "2"}),
        ("after=2", {"Last-Event-ID": "3"}),
    ],
)
async def test_a_stream_resumes_after_a_cursor_and_the_query_wins(
    append: Append, listen: Listen, query: str, headers: dict[str, str]
) -> None:
    await append("ses_1", _note(1), _note(2))

    async with listen(EVENT, query, headers) as chunks:
        assert _parse(await _next(chunks))[0] == 3
        assert await _next(chunks) == CAUGHT_UP


async def test_a_stream_from_the_head_is_caught_up_at_once(append: Append, listen: Listen) -> None:
    await append("ses_1", _note(1))

    async with listen(EVENT, "after=2") as chunks:
        assert await _next(chunks) == CAUGHT_UP


@pytest.mark.parametrize("path", [EVENT, STREAM])
async def test_a_cursor_beyond_the_head_is_refused(
    client: httpx.AsyncClient, append: Append, path: str
) -> None:
    await append("ses_1")

    answer = await client.get(path, params={"after": "2"})

    assert (answer.status_code, answer.json()["_tag"]) == (400, "InvalidCursorError")


async def test_a_last_event_id_that_is_no_number_is_refused(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1")

    answer = await client.get(EVENT, headers={"Last-Event-ID": "x"})

    assert (answer.json()["kind"], answer.json()["field"]) == ("Headers", "Last-Event-ID")


async def test_the_answer_is_an_event_stream_that_ends_when_the_process_does(
    client: httpx.AsyncClient, append: Append, runtime: Runtime
) -> None:
    await append("ses_1")
    runtime.shutdown.set()

    answer = await asyncio.wait_for(client.get(EVENT), 1)

    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-length" not in answer.headers


async def test_a_stream_interleaves_notices_and_live_deltas(
    eventlog: EventLog, append: Append, listen: Listen
) -> None:
    await append("ses_1", _note(1))
    at = Address(DEFAULT_TENANT, "ses_1")
    delta = TextDelta(assistant_message_id="msg_a", text_id="t", delta="Hel")

    async with listen(STREAM) as chunks:
        assert _parse(await _next(chunks))[1]["type"] == "session.created"
        assert _parse(await _next(chunks))[0] == 2
        assert await _next(chunks) == CAUGHT_UP
        await eventlog.deltas.send(at, delta)
        seq, event = _parse(await _next(chunks))
        assert (seq, event["type"], "durable" in event) == (None, "session.next.text.delta", False)
        assert event["data"]["delta"] == "Hel"
        await append("ses_1", InterruptRequested())
        assert _parse(await _next(chunks))[0] == 3


async def test_a_client_that_leaves_frees_its_subscriptions(
    eventlog: EventLog, append: Append, listen: Listen
) -> None:
    """H-33."""
    await append("ses_1")
    assert isinstance(eventlog.deltas, MemoryDeltas)
    listeners = eventlog.deltas._listeners[Address(DEFAULT_TENANT, "ses_1")]  # noqa: SLF001

    async with listen(STREAM) as chunks:
        await _next(chunks)
        assert len(listeners) == 1

    assert not listeners


class TestQuiet:
    """A stream without events."""

    @pytest.fixture
    def settings(self) -> GatewaySettings:
        return GatewaySettings(heartbeat_s=0.01)

    async def test_a_quiet_stream_beats(self, append: Append, listen: Listen) -> None:
        await append("ses_1")

        async with listen(EVENT) as chunks:
            assert await _next(chunks) == CAUGHT_UP
            assert await _next(chunks) == b": heartbeat\n\n"
            assert await _next(chunks) == b": heartbeat\n\n"
