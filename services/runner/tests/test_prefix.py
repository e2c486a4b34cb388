"""Every attempt records what its request begins with; a break inside an epoch is counted."""

import logging

import pytest
from prometheus_client import REGISTRY

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import AttemptDispatched, ModelSwitched
from services.runner.tests.conftest import World, admitted


def counted(source: str) -> float:
    return REGISTRY.get_sample_value("fairlead_prefix_breaks_total", {"source": source}) or 0


def total() -> float:
    return sum(counted(source) for source in ("system", "tools", "messages"))


async def hashes(world: World) -> list[str]:
    return [
        event.request_hash or "none"
        for event in await world.events()
        if isinstance(event, AttemptDispatched)
    ]


async def turn(world: World, id_: str) -> None:
    await world.write(admitted(id_))
    await world.drain()


async def test_an_attempt_records_the_fingerprint_of_its_request(world: World) -> None:
    before = total()

    await turn(world, "msg_1")
    await turn(world, "msg_2")

    first, second = await hashes(world)
    assert first.split()[:2] == second.split()[:2]
    assert (first.split()[2][:7], second.split()[2][:7]) == ("msgs:1:", "msgs:3:")
    assert total() == before


async def test_a_break_inside_an_epoch_is_counted_and_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The agent's words changed with the configuration: the provider's cache is lost."""
    await turn(world, "msg_1")
    before = counted("system")
    world.config["agent"]["build"]["system"] = "Be bold."

    with caplog.at_level(logging.WARNING):
        await turn(world, "msg_2")
        await turn(world, "msg_3")

    assert counted("system") == before + 1
    (told,) = [
        record
        for record in caplog.records
        if record.message == "request prefix changed: the provider's cache is lost"
    ]
    first, second, _third = await hashes(world)
    assert (vars(told)["source"], vars(told)["was"], vars(told)["now"]) == ("system", first, second)


async def test_another_model_is_no_break(world: World) -> None:
    world.config["provider"]["acme"]["model"]["slow"] = {}
    await turn(world, "msg_1")
    before = total()
    world.config["agent"]["build"]["system"] = "Be bold."
    slow = ModelRef(provider_id="acme", id="slow")
    await world.write(ModelSwitched(message_id="msg_m", model=slow))

    await turn(world, "msg_2")

    assert total() == before
    assert len(await hashes(world)) == 2
