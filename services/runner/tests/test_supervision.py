"""Background work of a runner outlives every error, and says so."""

import pytest

from fairlead_runner.wake_consumer import WakeConsumer
from services.runner.tests.conftest import World, admitted, standing, until


@pytest.fixture(autouse=True)
def _impatient(world: World) -> None:
    world.shorten(log_retry_s=0.001)


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

    async with standing(WakeConsumer(world.context())):
        await until(lambda: not world.wakes)

    assert not broken
    assert (await world.session()).execution.rested == "idle"
