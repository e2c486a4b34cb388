"""The loops of a runner start again after every error."""

import pytest

from fairlead_runner.wake_consumer import WakeConsumer
from services.runner.tests.conftest import World, admitted, run_consumer, wait_until


@pytest.fixture(autouse=True)
def _impatient(world: World) -> None:
    world.shorten(log_retry_s=0.001)


async def test_a_defect_while_taking_wakes_does_not_end_the_runner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-09: the consumer starts again and takes the next wake."""
    take, broken = world.eventlog.wakes.take, [True]

    def once_broken(room: object) -> object:
        if broken:
            broken.clear()
            raise RuntimeError("a defect")
        return take(room)  # type: ignore[arg-type]

    monkeypatch.setattr(world.eventlog.wakes, "take", once_broken)
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: not world.wakes)

    assert not broken
    assert (await world.session()).execution.rested == "idle"
