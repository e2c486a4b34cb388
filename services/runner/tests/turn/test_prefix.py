"""Every attempt records a fingerprint of its request; a changed prefix inside an epoch is counted."""

import logging

import pytest
from prometheus_client import REGISTRY

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import AttemptDispatched, ModelSwitched
from services.runner.tests.conftest import World, admitted


def count_breaks(source: str) -> float:
    return REGISTRY.get_sample_value("fairlead_prefix_breaks_total", {"source": source}) or 0


def total() -> float:
    return sum(count_breaks(source) for source in ("system", "tools", "messages"))


async def hashes(world: World) -> list[str]:
    return [
        event.request_hash or "none"
        for event in await world.events()
        if isinstance(event, AttemptDispatched)
    ]


async def take_turn(world: World, id_: str) -> None:
    await world.write(admitted(id_))
    await world.drain()


async def test_an_attempt_records_the_fingerprint_of_its_request(world: World) -> None:
    before = total()

    await take_turn(world, "msg_1")
    await take_turn(world, "msg_2")

    first, second = await hashes(world)
    assert first.split()[:2] == second.split()[:2]
    assert (first.split()[2][:7], second.split()[2][:7]) == ("msgs:1:", "msgs:3:")
    assert total() == before


async def test_a_break_inside_an_epoch_is_counted_and_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The agent's system prompt changed in the configuration, so the provider's cache is lost."""
    await take_turn(world, "msg_1")
    before = count_breaks("system")
    world.config["agent"]["build"]["system"] = "Be bold."

    with caplog.at_level(logging.WARNING):
        await take_turn(world, "msg_2")
        await take_turn(world, "msg_3")

    assert count_breaks("system") == before + 1
    (warning,) = [
        record
        for record in caplog.records
        if record.message == "request prefix changed: the provider's cache is lost"
    ]
    first, second, _third = await hashes(world)
    assert (vars(warning)["source"], vars(warning)["was"], vars(warning)["now"]) == (
        "system",
        first,
        second,
    )


async def test_another_model_is_no_break(world: World) -> None:
    world.config["provider"]["acme"]["model"]["slow"] = {}
    await take_turn(world, "msg_1")
    before = total()
    world.config["agent"]["build"]["system"] = "Be bold."
    slow = ModelRef(provider_id="acme", id="slow")
    await world.write(ModelSwitched(message_id="msg_m", model=slow))

    await take_turn(world, "msg_2")

    assert total() == before
    assert len(await hashes(world)) == 2
