"""Compaction through real processes: foreseen, after an overflow, on request, through a death, for long."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psycopg
import pytest
import pytest_asyncio

from fairlead_cli.embedded.ports import free_port
from fairlead_service.config.configuration import load
from fairlead_testing.session_driver import events_of, say, wait_until_settled
from fairlead_testing.stack import TIMEOUT_S, Stack, check_log, event_types, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(600),
]

TURNS = int(os.environ.get("FAIRLEAD_LONG_TURNS", "60"))
"""300 is the real thing; CI has no time for it."""
CONFIG = """
default_model = "sim/foreseen"

[compaction]
buffer = 600
keep_tokens = 300
summary_tokens = 300

[provider.sim]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}"

[provider.sim.model.foreseen]
id = "recall-3400"
context = 3400
output = 200
cost = {{ input = 1.0, output = 1.0 }}

[provider.sim.model.blind]
id = "recall-3400"
context = 100_000
output = 200

[provider.sim.model.slow]
id = "recall-3400-delay-60"
context = 3400
output = 200
"""
FACTS = "Fact: the home port is Oslo. Fact: the cargo is salt."
WORDS = "Tell me of the sea and of the long way over it, of wind and of weather. " * 8


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """Two runners, and models with small windows."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        config = _write_config(place)
        async with stack(place / "state", scale={"runner": 2}, config=config, sim=True) as running:
            yield running


def _write_config(place: Path) -> Path:
    place.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG.format(port=free_port()))
    return config


async def create_session(up: Stack, model: str) -> str:
    return await up.session(model={"providerID": "sim", "id": model})


async def turn(up: Stack, session: str, text: str) -> list[Any]:
    """Say something and see it answered; the whole log then."""
    await say(up, session, text)
    return await wait_until_settled(up, session)


async def until_compacted(up: Stack, session: str) -> list[Any]:
    """Talk until history was compacted."""
    log = await turn(up, session, FACTS)
    for number in range(40):
        if events_of(log, "compaction.ended"):
            return log
        log = await turn(up, session, f"{number}: {WORDS}")
    raise AssertionError("forty turns in a small window, and no compaction")


async def provider_requests(up: Stack, session: str) -> list[list[dict[str, Any]]]:
    """The messages of a session's last requests, as the provider got them."""
    base = load(up.up.config, {}).provider["sim"].base_url
    async with httpx.AsyncClient(trust_env=False) as client:
        last = (await client.get(f"{base}/sim/calls")).json()["last"]
    return [call["body"]["messages"] for call in last if call["session"] == session]


async def cost(up: Stack, session: str) -> float:
    value: float = (await up.http.get(f"/api/session/{session}")).json()["data"]["cost"]
    return value


def answers(log: list[Any]) -> list[str]:
    return [event.text for event in events_of(log, "text.ended")]


async def test_a_small_window_is_compacted_in_time(up: Stack) -> None:
    """G-02, G-12, G-20: without a single refusal; the whole transcript stays listable."""
    session = await create_session(up, "foreseen")

    log = await until_compacted(up, session)
    log = await turn(up, session, "What is the home port?")

    check_log(log)
    assert events_of(log, "attempt.overflowed") == events_of(log, "step.failed") == []
    assert answers(log)[-1] == "the home port is Oslo"
    context = (await up.http.get(f"/api/session/{session}/context")).json()["data"]
    messages = (await up.http.get(f"/api/session/{session}/message?limit=100")).json()["data"]
    assert context[0]["type"] == "compaction"
    assert FACTS in [message.get("text") for message in messages]
    assert len(messages) > len(context)


async def test_a_refused_prompt_is_compacted_and_asked_again(up: Stack) -> None:
    """G-30, G-31, G-32: nobody foresaw it, and nobody sees a failure."""
    session = await create_session(up, "blind")

    log = await until_compacted(up, session)

    check_log(log)
    assert events_of(log, "step.failed") == []
    overflow = event_types(log).index("attempt.overflowed")
    assert event_types(log)[overflow + 1] == "compaction.started"
    assert "attempt.dispatched" in event_types(log)[overflow:]


async def test_a_compaction_on_request_ends_in_rest(up: Stack) -> None:
    """P-07, G-17, G-40, I-29: its text is shown live, its cost counts, and nobody is woken for it again."""
    session = await create_session(up, "foreseen")
    for text in (FACTS, WORDS, WORDS):
        await turn(up, session, text)
    before = await cost(up, session)
    live: list[str] = []

    async def follow() -> None:
        async with aclosing(up.client.follow(session)) as events:
            async for event in events:
                live.append(event.type)
                if event.type == "compaction.ended":
                    return

    following = asyncio.create_task(follow())
    await asyncio.sleep(0.3)
    answer = await up.http.post(f"/api/session/{session}/compact")
    await up.until(session, "compaction.ended")
    log = await wait_until_settled(up, session)
    async with asyncio.timeout(TIMEOUT_S):
        await following

    assert answer.status_code == 204
    assert [event.reason for event in events_of(log, "compaction.ended")] == ["manual"]
    assert "compaction.delta" in live
    assert (await _row(up, session)) == (False, False, None)
    assert await cost(up, session) > before
    context = (await up.http.get(f"/api/session/{session}/context")).json()["data"]
    assert [message["type"] for message in context] == ["compaction"]


async def test_a_request_with_nothing_to_compact_is_over_at_once(up: Stack) -> None:
    """G-10, G-40."""
    session = await up.session()

    await up.ask("session.compact", {"sessionID": session})
    log = await up.until(session, "compaction.failed")
    await wait_until_settled(up, session)

    assert events_of(log, "compaction.failed")[0].outcome == "nothing"
    assert (await _row(up, session)) == (False, False, None)


async def _row(up: Stack, session: str) -> tuple[bool, bool, str | None]:
    """What the sweep looks at, once the session is at rest there."""
    query = "SELECT owed, work_requested, owner FROM projection.session WHERE session_id = %s"
    async with (
        asyncio.timeout(TIMEOUT_S),
        await psycopg.AsyncConnection.connect(up.up.postgres, autocommit=True) as connection,
    ):
        while True:
            row = await (await connection.execute(query, (session,))).fetchone()
            if row is not None and row[2] is None and not row[0]:
                return row[0], row[1], row[2]
            await asyncio.sleep(0.05)


async def test_runners_killed_during_the_summary_lose_nothing(up: Stack) -> None:
    """G-15: the start alone changes nothing; the next owner makes the summary anew."""
    session = await create_session(up, "slow")
    await turn(up, session, FACTS)
    prompts, log = 1, await up.events(session)
    while not events_of(log, "compaction.started"):
        if len(events_of(log, "step.ended")) == prompts:
            prompts += 1
            await say(up, session, f"{prompts}: {WORDS * 2}")
        await asyncio.sleep(0.02)
        log = await up.events(session)

    for index in range(2):
        up.up.kill("runner", index, signal.SIGKILL)
    log = await up.until(session, "compaction.ended")
    await up.up.wait_ready()
    log = await wait_until_settled(up, session)

    check_log(log)
    assert len(events_of(log, "compaction.started")) == 2
    assert len(events_of(log, "compaction.ended")) == 1
    assert event_types(log).count("prompt.promoted") == prompts
    assert answers(await turn(up, session, "What is the cargo?"))[-1] == "the cargo is salt"


async def test_a_long_conversation_remembers_its_first_message(up: Stack) -> None:
    """G-19, G-21: through summary after summary; between two of them no request breaks its prefix."""
    session = await create_session(up, "foreseen")
    log = await turn(up, session, FACTS)
    for number in range(2, TURNS + 1):
        question = "What is the cargo?" if number % 10 == 0 else WORDS
        log = await turn(up, session, f"{number}: {question}")
        if number % 10 == 0:
            assert answers(log)[-1] == "the cargo is salt"

    check_log(log)
    compactions = len(events_of(log, "compaction.ended"))
    breaks, stable = _prefixes(await provider_requests(up, session))
    sys.stdout.write(
        f"\n{TURNS} turns, {compactions} compactions; of the last {stable + breaks} requests "
        f"{stable} open with the one before, {breaks} do not\n"
    )
    assert compactions >= TURNS // 20
    assert events_of(log, "step.failed") == events_of(log, "compaction.failed") == []
    assert breaks <= compactions


def _prefixes(requests: list[list[dict[str, Any]]]) -> tuple[int, int]:
    """How many requests do not begin with all of the one before, and how many do."""
    turns = [messages for messages in requests if messages[0]["role"] == "system"]
    stable = [after[: len(before)] == before for before, after in pairwise(turns)]
    return stable.count(False), stable.count(True)
