"""Background work of a runner outlives every error, and says so."""

import asyncio
import logging

import pytest

from fairlead_eventlog.errors import LogUnavailable
from fairlead_runner import supervise as module
from fairlead_runner.supervise import lasting
from fairlead_runner.wake_consumer import WakeConsumer
from services.runner.tests.conftest import World, admitted, standing, until


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.001)


@pytest.mark.parametrize(
    ("error", "level"),
    [(LogUnavailable("away"), logging.WARNING), (ValueError("a defect"), logging.ERROR)],
)
async def test_an_error_is_logged_and_the_work_goes_on(
    error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    done = asyncio.Event()
    errors = [error]

    async def work() -> None:
        if errors:
            raise errors.pop()
        done.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(lasting("counting", work))
    async with asyncio.timeout(5):
        await done.wait()
    task.cancel()

    (record,) = [one for one in caplog.records if one.name == module.__name__]
    assert (record.levelno, record.getMessage()) == (level, "counting stopped")
    assert bool(record.exc_info) == (level == logging.ERROR)


async def test_a_defect_while_taking_wakes_does_not_end_the_runner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-09: the next wake is taken as if nothing had happened."""
    take, broken = world.eventlog.wakes.take, [True]

    def once_broken(room: object) -> object:
        if broken:
            broken.clear()
            raise RuntimeError("a defect")
        return take(room)  # type: ignore[arg-type]

    monkeypatch.setattr(world.eventlog.wakes, "take", once_broken)
    await world.write(admitted("msg_1"))
    await world.wake()

    async with standing(WakeConsumer(world.tackle())):
        await until(lambda: not world.wakes)

    assert not broken
    assert (await world.session()).rested == "idle"
