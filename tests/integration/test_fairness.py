"""Fair sharing: ten thousand sessions of one tenant do not delay another tenant's single prompt."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pytest
import pytest_asyncio

from fairlead_cli.commits import read_all
from fairlead_eventlog.ports import START
from fairlead_schema.events import SessionCreated
from fairlead_schema.location import LocationRef, project_id
from fairlead_schema.record import Draft, decode
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.session_driver import new_admission
from fairlead_testing.stack import Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),
]

CROWD = 10_000
SPARE = 500
"""Those whose turns are taken while the others come."""
RUNNERS = 2
SLOTS = 4
ROUND = RUNNERS * SLOTS
"""All turns of the crowd that can be under way at once."""
OTHERS = tuple(f"alone{number}" for number in range(5))
TIMEOUT_S = 60.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """Two runners with few slots. Nothing here needs the disk: the order counts."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        config, state, scale = (
            write_config(Path(directory)),
            Path(directory) / "state",
            {"runner": RUNNERS},
        )
        async with stack(state, config=config, sim=True, relaxed=True, scale=scale) as running:
            yield running


def write_config(place: Path) -> Path:
    place.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(f"[runner]\nsessions_max = {SLOTS}\n")
    return config


async def create_crowd(up: Stack, tenant: str, count: int) -> None:
    """So many sessions, each with an admitted prompt and its wake, written as ingest writes them."""
    together = asyncio.Semaphore(256)

    async def create_session() -> None:
        at = Address(tenant, ids.session_id())
        created = SessionCreated(
            title="One of many",
            project_id=project_id("/work"),
            location=LocationRef(directory="/work"),
        )
        prompt = new_admission("[[sim: first_byte_ms=250]] one of many")
        drafts = tuple(Draft(ids.event_id(), ids.now_ms(), event) for event in (created, prompt))
        async with together:
            await up.eventlog.log.append(at, ids.commit_id(), drafts, after=START)
            # On a busy machine the sweep may be first: then the session has its wake already.
            await up.eventlog.wakes.wake(at)

    await asyncio.gather(*(create_session() for _ in range(count)))


async def run_one_prompt(up: Stack, tenant: str) -> None:
    """One prompt of another tenant through the API, and its answer."""
    created = await up.ask("session.create", {}, tenant=tenant)
    session: str = created["data"]["id"]
    body = {"sessionID": session, "prompt": {"text": "just me"}}
    assert "data" in await up.ask("session.prompt", body, tenant=tenant)
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            log = await up.events(session, tenant=tenant)
            if any(item.event.type == "step.ended" for item in log):
                return
            await asyncio.sleep(0.05)


@dataclass(slots=True)
class Times:
    """When each session's prompt was admitted and when its first attempt left, as its log says."""

    admitted: dict[Address, int] = field(default_factory=dict)
    begun: dict[Address, int] = field(default_factory=dict)

    def of(self, tenants: Iterable[str]) -> list[tuple[int, int]]:
        return [
            (self.admitted[at], time) for at, time in self.begun.items() if at.tenant in tenants
        ]

    def of_prefix(self, prefix: str) -> list[tuple[int, int]]:
        return self.of({at.tenant for at in self.begun if at.tenant.startswith(prefix)})

    def count_waiting(self, tenant: str, now: int) -> int:
        came = sum(time <= now for at, time in self.admitted.items() if at.tenant == tenant)
        return came - sum(time <= now for at, time in self.begun.items() if at.tenant == tenant)


async def times(up: Stack) -> Times:
    read = Times()
    async for entry in read_all(up.eventlog):
        for item in decode(entry.payload).events:
            if item.event.type == "prompt.admitted":
                read.admitted.setdefault(entry.at, item.time)
            if item.event.type == "attempt.dispatched":
                read.begun.setdefault(entry.at, item.time)
    return read


async def test_a_single_prompt_passes_a_crowd_within_a_few_turns(up: Stack) -> None:
    """New tenants one by one, then known ones all at once: the crowd goes on, they do not wait.

    A full runner looks for tenants that run nothing, and their turn is next. So what the crowd can
    begin before it is a round of its slots, or two where a turn of it is the quicker one. A prompt
    needs some time without any crowd too, on a busy machine more: that is no wait for the crowd.
    """
    await asyncio.gather(*(run_one_prompt(up, f"early{number}") for number in range(ROUND)))
    alone_ms = median(left - came for came, left in (await times(up)).of_prefix("early"))
    await create_crowd(up, "crowd", CROWD + SPARE)

    for tenant in OTHERS:
        await run_one_prompt(up, tenant)
    await asyncio.gather(*(run_one_prompt(up, tenant) for tenant in OTHERS))

    read = await times(up)
    begun = [time for _, time in read.of({"crowd"})]
    single = read.of(OTHERS)
    passed = [sum(came <= time <= left - alone_ms for time in begun) for came, left in single]
    print(f"{alone_ms:.0f} ms without a crowd, {max(left - came for came, left in single)} with it")  # noqa: T201
    print(f"{len(begun)} turns of the crowd began; {sorted(passed)} of them while one waited")  # noqa: T201
    assert len(single) == 2 * len(OTHERS)
    assert min(read.count_waiting("crowd", came) for came, _ in single) >= CROWD, (
        "the crowd was there"
    )
    assert max(passed) <= 2 * ROUND
