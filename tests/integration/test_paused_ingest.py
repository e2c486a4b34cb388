"""One of two ingests stands still: nobody is refused, and nothing happens twice (D4)."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator

import httpx
import orjson
import pytest
import pytest_asyncio

from fairlead_schema import subjects
from fairlead_schema.events import PromptAdmitted
from fairlead_schema.subjects import Address
from fairlead_testing.stack import Stack, stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

PROMPTS = 20
BURST = 200


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A stack with two ingests."""
    place = tmp_path_factory.mktemp("two")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    async with stack(place / "state", scale={"ingest": 2}) as running:
        yield running


@pytest.mark.parametrize("paused", [0, pytest.param(1, marks=pytest.mark.slow)])
async def test_no_prompt_is_refused_while_one_ingest_works(two: Stack, paused: int) -> None:
    """D4: with and without an id of the caller, and each is admitted once, whatever runs late."""
    session = await two.session()
    path = f"/api/session/{session}/prompt"

    async def prompt(number: int) -> tuple[int, str, float]:
        body = {"prompt": {"text": f"prompt {number}"}, "resume": False, "delivery": "queue"}
        if number % 2:
            body["id"] = f"msg_{paused}_{number}"
        began = time.monotonic()
        answer = await two.http.post(path, json=body, timeout=30)
        return answer.status_code, answer.text, time.monotonic() - began

    two.up.kill("ingest", paused, signal.SIGSTOP)
    try:
        answers = [await prompt(number) for number in range(PROMPTS)]
        created = await two.http.post("/api/session", json={}, timeout=30)
        stopped = await two.http.post(f"/api/session/{session}/interrupt", timeout=30)
        pending = await two.http.get(f"/api/session/{session}/input", timeout=30)
    finally:
        two.up.kill("ingest", paused, signal.SIGCONT)

    assert [status for status, _, _ in answers] == [httpx.codes.OK] * PROMPTS, answers
    assert created.status_code == httpx.codes.OK
    assert stopped.status_code == httpx.codes.NO_CONTENT
    assert len(pending.json()["data"]) == PROMPTS
    # The ingest that stood still handles what it got. It changes nothing any more.
    await asyncio.sleep(2)
    admitted = Counter(
        recorded.event.prompt.text
        for recorded in await two.events(session)
        if isinstance(recorded.event, PromptAdmitted)
    )
    assert admitted == {f"prompt {number}": 1 for number in range(PROMPTS)}


async def test_two_ingests_admit_a_burst_of_one_session_in_order_and_soon(two: Stack) -> None:
    """A20: the queue deals the prompts out to both. Each waits for the other, and none for long."""
    session = await two.session()
    at = Address("default", session)
    texts = [f"burst {number}" for number in range(BURST)]
    for text in texts:
        body = {"prompt": {"text": text}, "resume": False, "delivery": "queue"}
        await two.eventlog.work.put(subjects.prompt(at), orjson.dumps(body))

    admitted: list[str] = []
    async with asyncio.timeout(60):
        while len(admitted) < BURST:
            await asyncio.sleep(0.2)
            admitted = [
                recorded.event.prompt.text
                for recorded in await two.events(session)
                if isinstance(recorded.event, PromptAdmitted)
            ]

    assert admitted == texts
