"""Fair sharing: a crowded tenant does not delay another tenant's single prompt."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from fairlead_eventlog.port import START
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_testing.places import opened
from fairlead_testing.stack import Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

CROWD = 250
SLOTS = 4


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    place = opened(tmp_path_factory.mktemp("fairness"))
    config = place / "fairlead.toml"
    config.write_text(f"[runner]\nsessions_max = {SLOTS}\n")
    async with stack(place / "state", config=config, sim=True) as running:
        yield running


async def log_of(up: Stack, tenant: str, session: str) -> list[Recorded]:
    page = await up.eventlog.log.read(Address(tenant, session), after=START)
    return [event for stored in page.commits for event in stored.commit.events]


async def prompted(up: Stack, tenant: str, text: str) -> str:
    created = await up.ask("session.create", {}, tenant=tenant)
    session: str = created["data"]["id"]
    body = {"sessionID": session, "prompt": {"text": text}}
    assert "data" in await up.ask("session.prompt", body, tenant=tenant)
    return session


async def test_a_single_prompt_passes_a_crowd_within_a_few_turns(up: Stack) -> None:
    slow = "[[sim: first_byte_ms=150]] one of many"
    crowd = [await prompted(up, "crowd", slow) for _ in range(CROWD)]

    alone = await prompted(up, "alone", "just me")
    async with asyncio.timeout(60):
        while True:
            mine = await log_of(up, "alone", alone)
            if any(item.event.type == "step.ended" for item in mine):
                break
            await asyncio.sleep(0.05)

    admitted = next(item.time for item in mine if item.event.type == "prompt.admitted")
    ended = next(item.time for item in mine if item.event.type == "step.ended")
    others = [await log_of(up, "crowd", session) for session in crowd]
    between = [
        item
        for log in others
        for item in log
        if item.event.type == "step.ended" and admitted <= item.time <= ended
    ]
    waiting = sum(not any(item.event.type == "step.ended" for item in log) for log in others)
    assert waiting > SLOTS, "the crowd was still there"
    assert len(between) <= 10 * SLOTS
