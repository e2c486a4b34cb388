"""Many clients of event streams in a whole stack: what `fairlead bench streams` does, made small."""

import asyncio
import json
from typing import Any

import pytest

from fairlead_cli.bench.streams.fan_out import measure_many_sessions, measure_one_session
from fairlead_testing.stack import TIMEOUT_S, Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

# Far above what a stream holds, and far below a copy of anything large.
KIB_EACH_MAX = 500


async def test_many_clients_of_one_session_get_every_fragment(up: Stack) -> None:
    """H-30, H-37: nobody is cut off, and a further client costs little."""
    pid = up.up.pid("gateway")
    assert pid is not None

    figures = await measure_one_session(
        up.up.http_with_key, pid, up.eventlog, clients=100, fragments=100
    )

    alone, further, _late = figures.values()
    assert 0 < further < alone


async def test_a_client_that_comes_in_the_middle_of_an_answer_misses_nothing(up: Stack) -> None:
    """The text so far, then the rest, and each word once; the cursor stays where it was."""
    session = await up.session()
    words = " ".join(f"word{number}" for number in range(60))
    prompt = {"text": f'[[sim: chunks=60 delay_ms=50 answer="{words}"]] go'}
    await up.ask("session.prompt", {"sessionID": session, "prompt": prompt})
    await up.until(session, "text.started")
    await asyncio.sleep(0.5)

    deltas: list[dict[str, Any]] = []
    event: dict[str, Any] = {}
    async with (
        asyncio.timeout(TIMEOUT_S),
        up.http.stream("GET", f"/api/session/{session}/stream", timeout=None) as stream,
    ):
        async for line in stream.aiter_lines():
            event = json.loads(line[5:]) if line.startswith("data:") else {}
            if event.get("type") == "session.next.text.delta":
                deltas.append(event)
            if event.get("type") == "session.next.text.ended":
                break

    assert "".join(delta["data"]["delta"] for delta in deltas) == event["data"]["text"] == words
    assert len(deltas[0]["data"]["delta"].split()) > 1
    assert [delta["data"]["index"] for delta in deltas[1:]] == list(
        range(deltas[1]["data"]["index"], 60)
    )
    assert not any("durable" in delta for delta in deltas)


async def test_clients_of_many_sessions_get_their_own_fragments(up: Stack) -> None:
    """H-30, H-33: each session has a hub as long as it has a client."""
    pid = up.up.pid("gateway")
    assert pid is not None

    figures = await measure_many_sessions(up.up.http_with_key, pid, up.eventlog, sessions=150)

    (memory_kib,) = (value for name, value in figures.items() if name.endswith("KiB each"))
    assert memory_kib < KIB_EACH_MAX
