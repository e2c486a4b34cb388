"""The sweep against real servers: whose wakes it takes, and that it reaches every session."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.wakes import MemoryWakes
from fairlead_eventlog.ports import Job, Wakes
from fairlead_eventlog.provision import provision
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.slots import Slots
from fairlead_projector import database
from fairlead_projector.migrations import migrate
from fairlead_projector.stalls import REFUSALS_MAX, StallDetector
from fairlead_projector.sweep import MovingSessions, StallWaker, SweptRow, sweep
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.nats import Server

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

pytestmark = pytest.mark.integration

MOVING = """
    INSERT INTO projection.session (
           tenant, session_id, seq, position, project_id, title, directory, tokens, created_at,
           updated_at, owed, work_requested, waiting, wake_at)
    SELECT %(tenant)s, %(prefix)s || to_char(n, 'FM0000000'), 1, n, 'p', 't', '/w', '{}', n, n, true,
           true, %(waiting)s, %(wake_at)s::bigint
      FROM generate_series(1, %(count)s) AS n
"""


async def add_sessions(
    dsn: str,
    prefix: str,
    count: int,
    *,
    tenant: str = "default",
    waiting: bool = False,
    wake_at: int | None = None,
) -> None:
    async with await database.connect(dsn) as connection:
        await migrate(connection)
        parameters = {"tenant": tenant, "prefix": prefix, "count": count}
        await connection.execute(MOVING, {**parameters, "waiting": waiting, "wake_at": wake_at})
        await connection.execute("ANALYZE projection.session")


class RecordingWakes:
    """The wakes of a real server, and what the sweep took from them."""

    def __init__(self, wakes: Wakes) -> None:
        self._wakes = wakes
        self.refused = 0
        self.renewed: list[Address] = []

    async def wake(
        self, at: Address, *, position: int | None = None, commit: CommitHint | None = None
    ) -> bool:
        taken = await self._wakes.wake(at, position=position, commit=commit)
        self.refused += not taken
        return taken

    async def renew(self, at: Address, *, position: int | None = None) -> bool:
        renewed = await self._wakes.renew(at, position=position)
        self.renewed += [at] * renewed
        return renewed

    def take(self, slots: Slots) -> AsyncIterator[Job]:
        return self._wakes.take(slots)


async def look_for_s(waker: StallWaker, at: Address, owner: str, seconds: int) -> None:
    """Sweep every two seconds, by a clock of our own."""
    stalls = StallDetector(age_s=3)
    for now in range(0, seconds, 2):
        stalls.watch([(at, 5)], now=now)
        stalls.end_lap()
        await waker.wake_due(stalls, {at: SweptRow(1, owner)}, now=now)


async def test_a_silent_turn_of_a_runner_that_lives_keeps_its_wake(tmp_path: Path) -> None:
    """A18: the sweep took the wake after 26 s, and it bounced once a second until the turn ended.

    The wake of a runner that is gone is renewed, so that another one takes the session.
    """
    server, at = Server(tmp_path, free_port()), Address("default", ids.session_id())
    server.start()
    try:
        await provision(server.address, wake_deadline_s=600.0)
        async with (
            connect(server.address, name="runner") as runner,
            connect(server.address, name="projector") as projector,
        ):
            await runner.liveness.start_answering("run_a")
            wakes = RecordingWakes(projector.wakes)
            waker = StallWaker(replace(projector, wakes=wakes))
            assert await runner.wakes.wake(at)
            async with asyncio.timeout(120), await anext(runner.wakes.take(Slots(8))):
                await look_for_s(waker, at, "run_a", 400)
                assert wakes.renewed == []
                assert wakes.refused > REFUSALS_MAX["silent"]

                await look_for_s(waker, at, "run_gone", 26)
                assert wakes.renewed == [at]
    finally:
        server.kill()


async def test_sessions_that_wait_do_not_hide_one_that_stands_still(dsn: str) -> None:
    """A15: 20,000 sessions wait for people, and 20,000 for a time; one behind them lost its wake."""
    await add_sessions(dsn, "ses_p", 20_000, waiting=True)
    await add_sessions(dsn, "ses_t", 20_000, wake_at=ids.now_ms() + 3_600_000)
    await add_sessions(dsn, "ses_z", 1, wake_at=ids.now_ms() - 1)
    stalls = StallDetector(age_s=0)
    async with await database.connect(dsn) as connection:
        await MovingSessions(connection).watch(stalls, now=0)

    assert stalls.seen == [Address("default", "ses_z0000001")], "nothing else was read"
    assert stalls.take_due(now=0) == [Address("default", "ses_z0000001")]


async def test_a_lap_goes_on_where_the_last_round_stopped(dsn: str) -> None:
    """A15: a round reads bounded pages, and every session comes up once in a lap."""
    await add_sessions(dsn, "ses_", 2_345)
    rounds: list[int] = []
    stalls = StallDetector(age_s=0)
    async with await database.connect(dsn) as connection:
        sessions = MovingSessions(connection, page_rows=100)
        for now in range(3):
            rows = await sessions.watch(stalls, now=now)
            assert set(rows) == set(stalls.seen)
            rounds.append(len(rows))
            stalls.take_due(now=now)

    assert rounds == [1_000, 1_000, 345]


class RefusingWakes(RecordingWakes):
    """A queue that takes no wake of one tenant."""

    def __init__(self) -> None:
        self.memory = MemoryWakes()
        super().__init__(self.memory)

    @override
    async def wake(
        self, at: Address, *, position: int | None = None, commit: CommitHint | None = None
    ) -> bool:
        if at.tenant == "full":
            raise LogUnavailable("the queue is away")
        return await super().wake(at, position=position, commit=commit)


async def test_a_lane_that_refuses_wakes_does_not_stop_the_others(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """One tenant's failure is told and tried again; it does not end the round."""
    await add_sessions(projection.dsn, "ses_f", 30, tenant="full")
    await add_sessions(projection.dsn, "ses_o", 30, tenant="open")
    wakes = RefusingWakes()
    eventlog = replace(log_builder.eventlog, wakes=wakes)
    task = partial(sweep, projection.dsn, eventlog, interval_s=0.05, age_s=0.1)
    async with projection.run_tasks(task):
        await projection.wait_until(lambda: len(wakes.memory.queue.messages) == 30)

    assert {message.subject.split(".")[2] for message in wakes.memory.queue.messages} == {"open"}


async def test_a_queue_that_takes_no_wake_at_all_is_told() -> None:
    stalls = StallDetector(age_s=0)
    sessions = [Address("full", f"ses_{n}") for n in range(30)]
    stalls.watch([(at, 1) for at in sessions], now=0)
    waker = StallWaker(replace(memory_eventlog(), wakes=RefusingWakes()))

    with pytest.raises(LogUnavailable):
        await waker.wake_due(stalls, dict.fromkeys(sessions, SweptRow(1)), now=0)
