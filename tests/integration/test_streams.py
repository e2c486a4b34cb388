"""Many clients of event streams in a whole stack: what `fairlead bench streams` does, made small."""

import asyncio
import json
from typing import Any, TypeAlias

import httpx
import pytest

from fairlead_cli.bench.streams.fan_out import measure_many_sessions, measure_one_session
from fairlead_testing.second_gateway import second_gateway
from fairlead_testing.stack import TIMEOUT_S, Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

# Far above what a stream holds, and far below a copy of anything large.
KIB_EACH_MAX = 500
WORDS = " ".join(f"word{number}" for number in range(60))
Frame: TypeAlias = tuple[int | None, dict[str, Any]]


async def test_many_clients_of_one_session_get_every_fragment(up: Stack) -> None:
    """H-30, H-37: nobody is cut off, and a further client costs little."""
    pid = up.up.pid("gateway")
    assert pid is not None

    figures = await measure_one_session(
        up.up.http_with_key, pid, up.eventlog, clients=100, fragments=100
    )

    alone, further, _late = figures.values()
    assert 0 < further < alone


async def read_answer(http: httpx.AsyncClient, session: str, *, after: int = 0) -> list[Frame]:
    """The frames of a session's stream up to the end of its text, each with its id or None."""
    frames: list[Frame] = []
    path, id_ = f"/api/session/{session}/stream?after={after}", None
    async with asyncio.timeout(TIMEOUT_S), http.stream("GET", path, timeout=None) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("id:"):
                id_ = int(line[3:])
            if line.startswith("data:"):
                frames.append((id_, json.loads(line[5:])))
                id_ = None
                if frames[-1][1]["type"] == "session.next.text.ended":
                    break
    return frames


async def begin_answer(up: Stack) -> str:
    """A session in the middle of an answer of sixty words, of which some are written."""
    session = await up.session()
    prompt = {"text": f'[[sim: chunks=60 delay_ms=50 answer="{WORDS}"]] go'}
    await up.ask("session.prompt", {"sessionID": session, "prompt": prompt})
    await up.until(session, "text.started")
    await asyncio.sleep(0.5)
    return session


def check_answer(frames: list[Frame]) -> None:
    """The text so far and the rest make the whole text, each word once, and move no cursor."""
    deltas = [frame for frame in frames if frame[1]["type"] == "session.next.text.delta"]
    text = "".join(event["data"]["delta"] for _, event in deltas)
    assert text == frames[-1][1]["data"]["text"] == WORDS
    assert len(deltas[0][1]["data"]["delta"].split()) > 1
    indexes = [event["data"]["index"] for _, event in deltas[1:]]
    # A busy machine joins a few chunks, and their numbers stay without a gap.
    assert indexes == list(range(indexes[0], indexes[0] + len(indexes)))
    assert not any("durable" in event for _, event in deltas)
    assert {id_ for id_, _ in deltas} == {None}


async def test_a_client_that_comes_in_the_middle_of_an_answer_misses_nothing(up: Stack) -> None:
    """The text so far, then the rest, and each word once; the cursor stays where it was."""
    session = await begin_answer(up)

    check_answer(await read_answer(up.http, session))


async def test_a_client_that_changes_the_gateway_in_the_middle_of_an_answer_misses_nothing(
    up: Stack,
) -> None:
    """P-09: one client reads on at the first gateway, the other comes late to the second one."""
    async with second_gateway(up) as other:
        session = await begin_answer(up)
        head = len(await up.events(session))

        stayed, came = await asyncio.gather(
            read_answer(up.http, session), read_answer(other, session, after=head)
        )

    check_answer(stayed)
    check_answer(came)
    # The cursor is the last durable sequence, at both gateways and whatever was shown in between.
    assert [id_ for id_, _ in came if id_] == [id_ for id_, _ in stayed if id_ and id_ > head]


async def test_clients_of_many_sessions_get_their_own_fragments(up: Stack) -> None:
    """H-30, H-33: each session has a hub as long as it has a client."""
    pid = up.up.pid("gateway")
    assert pid is not None

    figures = await measure_many_sessions(up.up.http_with_key, pid, up.eventlog, sessions=150)

    (memory_kib,) = (value for name, value in figures.items() if name.endswith("KiB each"))
    assert memory_kib < KIB_EACH_MAX
