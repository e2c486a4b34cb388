"""Work that lasts: restarted after every failure, reported, and stopped in order."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairlead_service import supervise as module
from fairlead_service.supervise import Restarts, Work, cancel_and_wait, report_defects, supervise

WAIT_S = 5.0
QUICK = 0.001


class Away(Exception):
    pass


class Flaky:
    """Fails with the given errors, one per start, and then runs until it is cancelled."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.running = asyncio.Event()
        self.starts = 0

    async def __call__(self) -> None:
        self.starts += 1
        if self.errors:
            raise self.errors.pop(0)
        self.running.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def run_supervised(work: Work, restarts: Restarts) -> AsyncIterator[None]:
    report = report_defects(Away)
    task = asyncio.create_task(supervise("counting", work, restarts=restarts, report=report))
    try:
        async with asyncio.timeout(WAIT_S):
            yield
    finally:
        await cancel_and_wait(task)


@pytest.mark.parametrize(
    ("error", "level"),
    [(Away("no servers"), logging.WARNING), (ValueError("a defect"), logging.ERROR)],
)
async def test_a_failure_is_logged_and_the_work_starts_again(
    error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    work = Flaky(error)

    async with run_supervised(work, Restarts(pause_s=QUICK)):
        await work.running.wait()

    (record,) = [record for record in caplog.records if record.name == module.__name__]
    assert (record.levelno, record.getMessage()) == (level, "counting failed: it starts again")
    assert bool(record.exc_info) == (level == logging.ERROR)


async def test_work_that_ends_starts_again_without_a_complaint(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ends = 0
    enough = asyncio.Event()

    async def work() -> None:
        nonlocal ends
        ends += 1
        if ends == 3:
            enough.set()

    async with run_supervised(work, Restarts(pause_s=QUICK)):
        await enough.wait()

    assert not caplog.records


async def test_the_complaint_is_the_last_failure_until_the_work_is_healthy() -> None:
    restarts = Restarts(pause_s=QUICK)
    work = Flaky(Away("no servers"))

    assert restarts.complaint == "starting"
    async with run_supervised(work, restarts):
        await work.running.wait()
        assert restarts.complaint == "Away: no servers"
        restarts.healthy()
        assert restarts.complaint is None


def test_pauses_double_up_to_a_limit_and_are_short_again_after_health() -> None:
    restarts = Restarts(pause_s=1.0, pause_s_max=5.0)

    assert [restarts.next_pause_s() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    restarts.healthy()
    assert restarts.next_pause_s() == 1.0


def test_a_pause_varies_within_its_jitter() -> None:
    restarts = Restarts(pause_s=1.0, pause_s_max=1.0, jitter=0.2)

    pauses = [restarts.next_pause_s() for _ in range(100)]

    assert 0.8 <= min(pauses) < max(pauses) <= 1.2


async def test_work_that_held_long_was_healthy() -> None:
    restarts = Restarts(pause_s=QUICK, pause_s_max=60.0, steady_s=0.0)
    work = Flaky(*(Away(str(n)) for n in range(15)))

    async with run_supervised(work, restarts):
        await work.running.wait()

    assert work.starts == 16


async def test_a_stop_ends_the_work_and_cuts_a_pause_short() -> None:
    stop = asyncio.Event()
    work = Flaky(Away("no servers"))
    restarts = Restarts(pause_s=60.0)
    task = asyncio.create_task(supervise("counting", work, restarts=restarts, stop=stop))
    async with asyncio.timeout(WAIT_S):
        while restarts.complaint == "starting":
            await asyncio.sleep(0)
        stop.set()
        await task

    assert work.starts == 1


async def test_a_failure_while_it_stops_is_one_plain_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stop = asyncio.Event()

    async def work() -> None:
        await stop.wait()
        raise Away("no servers")

    task = asyncio.create_task(supervise("counting", work, stop=stop))
    await asyncio.sleep(0)
    stop.set()
    async with asyncio.timeout(WAIT_S):
        await task

    (record,) = caplog.records
    assert record.getMessage() == "counting did not stop cleanly"
    assert record.levelno == logging.WARNING
    assert vars(record)["reason"] == "Away: no servers"
    assert not record.exc_info


async def test_cancelled_tasks_have_ended_and_a_failure_on_the_way_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(QUICK)
            ended.append("slow")

    async def broken() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("a defect")

    async def broken_before() -> None:
        raise ValueError("its owner has seen this defect")

    work = (slow(), broken(), broken_before())
    tasks = [asyncio.create_task(coroutine) for coroutine in work]
    await asyncio.sleep(0)
    await cancel_and_wait(*tasks)

    assert ended == ["slow"]
    (record,) = caplog.records
    assert record.getMessage() == "task failed while it was cancelled"
    assert broken.__qualname__ in vars(record)["task"]
