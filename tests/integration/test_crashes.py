"""SIGKILL of every process in mid-flow: nothing accepted is lost, nothing is done twice."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead_client import ClientError, Refused
from fairlead_eventlog.errors import LogError
from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_testing.projection import digest_when_projected
from fairlead_testing.stack import Stack, check_log, event_types

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

SLOW = "[[sim: chunks=30 delay_ms=40]] take your time"


async def admit(up: Stack, session: str, message: str, text: str) -> None:
    """Admit with exact retries until there is a receipt, as a careful caller does."""
    async with asyncio.timeout(60):
        while True:
            with suppress(LogError, TimeoutError):
                body = {"sessionID": session, "id": message, "prompt": {"text": text}}
                answer = await up.ask("session.prompt", body)
                if "data" in answer:
                    return
            await asyncio.sleep(0.1)


async def check_answers(up: Stack, sessions: list[str], prompts: int) -> None:
    """Wait until every session has promoted all it admitted and rests; then check its log."""
    for session in sessions:
        async with asyncio.timeout(90):
            while True:
                with suppress(LogError, TimeoutError):
                    log = await up.wait_until_rested(session)
                    if event_types(log).count("prompt.promoted") == prompts:
                        break
        check_log(log)
        assert event_types(log).count("prompt.admitted") == prompts
        ends = event_types(log).count("step.ended")
        assert ends >= 1, "every session was answered in the end"


@pytest.mark.parametrize("victim", ["ingest", "runner", "tools", "projector", "gateway"])
async def test_a_killed_service_loses_nothing(up: Stack, victim: str) -> None:
    sessions = [await up.session() for _ in range(4)]
    for number, session in enumerate(sessions):
        await admit(up, session, f"msg_{victim}a{number}", SLOW)
    await up.until(sessions[0], "step.started")

    for index in range(2 if victim == "runner" else 1):
        up.up.kill(victim, index, signal.SIGKILL)
    for number, session in enumerate(sessions):
        await admit(up, session, f"msg_{victim}b{number}", "and then")
    await up.up.wait_ready()

    await check_answers(up, sessions, prompts=2)


async def test_a_runner_killed_in_mid_stream_is_recovered_visibly(up: Stack) -> None:
    """P-01: the partial answer is closed, the step fails as interrupted, the turn runs again."""
    session = await up.session()
    await admit(up, session, "msg_recover1", SLOW)
    log: list[Any] = await up.until(session, "step.started")
    claimed: Any = next(item.event for item in log if item.event.type == "execution.claimed")

    for index in range(2):
        up.up.kill("runner", index, signal.SIGKILL)
    log = await up.until(session, "step.ended")

    check_log(log)
    names = event_types(log)
    assert "execution.recovered" in names
    failed: Any = next(item.event for item in log if item.event.type == "step.failed")
    assert failed.error.message == "Provider turn interrupted"
    claims: list[Any] = [item.event for item in log if item.event.type == "execution.claimed"]
    assert claims[-1].runner != claimed.runner
    assert names.count("prompt.promoted") == 1


async def test_a_killed_nats_server_loses_no_acknowledged_prompt(up: Stack) -> None:
    sessions = [await up.session() for _ in range(4)]
    for number, session in enumerate(sessions):
        await admit(up, session, f"msg_nats_a{number}", SLOW)
    await up.until(sessions[0], "step.started")

    up.up.kill("nats", 0, signal.SIGKILL)
    for number, session in enumerate(sessions):
        await admit(up, session, f"msg_nats_b{number}", "and then")
    await up.up.wait_ready()

    await check_answers(up, sessions, prompts=2)


async def test_with_postgres_down_turns_go_on_and_reads_say_so(up: Stack) -> None:
    """ARCHITECTURE section 7: the log alone is enough to run."""
    session = await up.session()
    up.up.kill("postgres", 0, signal.SIGSTOP)
    try:
        await admit(up, session, "msg_pg_1", "while the tables sleep")
        await up.until(session, "step.ended")
    finally:
        up.up.kill("postgres", 0, signal.SIGCONT)

    up.up.kill("postgres", 0, signal.SIGKILL)
    statuses = set()
    async with asyncio.timeout(60):
        while 200 not in statuses:
            with suppress(httpx.HTTPError):
                answer = await up.http.get(f"/api/session/{session}")
                statuses.add(answer.status_code)
                if answer.status_code != 200:
                    assert answer.json()["_tag"] == "ServiceUnavailableError", answer.text
            await asyncio.sleep(0.05)
    await up.up.wait_ready()
    assert statuses <= {200, 503}
    messages = await up.messages(session)
    assert [message["type"] for message in messages] == ["user", "assistant"]


@pytest.mark.parametrize(
    "stall_s", [0, pytest.param(10, marks=pytest.mark.slow)], ids=["a moment", "ten seconds"]
)
async def test_a_stalled_postgres_stops_no_admission_turn_or_stream(
    up: Stack, stall_s: float
) -> None:
    """Every process of Postgres stands still, with its connections open. The rows catch up later."""
    session, loop, ended = await up.session(), asyncio.get_running_loop(), asyncio.Semaphore(0)

    async def follow() -> None:
        async for event in up.client.follow(session, live=False):
            if event.type == "step.ended":
                ended.release()

    following, turns = asyncio.create_task(follow()), 0
    with stopped_postgres(up):
        deadline = loop.time() + stall_s
        while turns < 3 or loop.time() < deadline:
            await admit(up, session, f"msg_stall_{stall_s}_{turns}", "while the tables stand still")
            async with asyncio.timeout(60):
                await ended.acquire()
            turns += 1
            await asyncio.sleep(0.2)
        await probe_until_degraded(up)
    following.cancel()

    await up.wait_until_rested(session)
    await digest_when_projected(up)
    messages = await read_when_available(up, session)
    assert [message["type"] for message in messages] == ["user", "assistant"] * turns


async def probe_until_degraded(up: Stack) -> None:
    """C3: probe the gateway as Kubernetes does. It stays in service, and says what it misses."""
    async with asyncio.timeout(60), httpx.AsyncClient(trust_env=False) as probe:
        while True:
            answer = await probe.get(f"{up.up.ops}/readyz")
            assert answer.status_code == 200, answer.text
            if "postgres" in answer.json()["degraded"]:
                return
            await asyncio.sleep(0.2)


async def read_when_available(up: Stack, session: str) -> list[dict[str, Any]]:
    """The messages of a session. For a moment after a stall the gateway may say that reads are not available."""
    async with asyncio.timeout(60):
        while (
            answer := await up.http.get(f"/api/session/{session}/message?order=asc&limit=200")
        ).is_error:
            assert answer.json()["_tag"] == "ServiceUnavailableError", answer.text
            await asyncio.sleep(0.1)
    messages: list[dict[str, Any]] = answer.json()["data"]
    return messages


@contextmanager
def stopped_postgres(up: Stack) -> Iterator[None]:
    """Stop the server and all that serve its connections, for the length of a block."""
    server = up.up.pid("postgres", 0)
    assert server is not None
    # The server first: it then starts no further process.
    os.kill(server, signal.SIGSTOP)
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    processes = [server, *map(int, children)]
    try:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


async def test_a_stream_resumes_without_gap_or_duplicate_when_the_gateway_dies(up: Stack) -> None:
    """H-30: the client reconnects with the last sequence it saw."""
    session = await up.session()
    sequences: list[int] = []
    done = asyncio.Event()

    async def follow() -> None:
        ends = 0
        async for event in up.client.follow(session, live=False):
            if event.seq is None:
                continue
            sequences.append(event.seq)
            ends += event.type == "step.ended"
            if ends == 3:
                done.set()
                return

    following = asyncio.create_task(follow())
    for number in range(3):
        await admit(up, session, f"msg_resume{number}", "[[sim: chunks=5 delay_ms=40]] on")
        await up.until(session, "step.ended", count=number + 1)
        if number < 2:
            up.up.kill("gateway", 0, signal.SIGKILL)
            await up.up.wait_ready()
    async with asyncio.timeout(60):
        await done.wait()
    following.cancel()

    public = [
        item.seq
        for item in await up.events(session)
        if item.event.visibility == "public" and item.seq <= sequences[-1]
    ]
    assert sequences == public


async def test_the_read_models_rebuild_to_the_same_rows(up: Stack) -> None:
    """H-22: after everything above, a fresh replay gives identical tables."""
    session = await up.session()
    with suppress(Refused, ClientError):
        await up.client.prompt(session, "last words")
    await up.wait_until_rested(session)
    live = await digest_when_projected(up)

    await rebuild(up.up.postgres, up.eventlog, progress=lambda _progress: None)

    assert await digest(up.up.postgres) == live
