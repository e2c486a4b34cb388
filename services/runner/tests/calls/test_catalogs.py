"""The tools that a runner offers to a model while the tools service comes and goes."""

import json

import pytest

from fairlead_runner.calls.catalogs import Catalogs
from fairlead_schema import subjects
from fairlead_schema.context import ObserveContext
from fairlead_schema.location import LocationRef
from fairlead_schema.tools.request import ToolCatalog, ToolInfo
from services.runner.tests.conftest import World

QUESTION = ObserveContext(location=LocationRef(directory="/w"), agent="build")
READ = ToolInfo(name="read", description="reads", input_schema={}, retry="pure", revision="read@1")


def set_answer(world: World, body: bytes | None) -> None:
    async def answer(_body: bytes) -> bytes:
        assert body is not None
        return body

    answerers = world.eventlog.requests.answerers  # type: ignore[attr-defined]
    answerers.pop(subjects.tool_catalog("default"), None)
    if body is not None:
        answerers[subjects.tool_catalog("default")] = answer


def catalog_body(*tools: ToolInfo) -> bytes:
    return json.dumps({"data": ToolCatalog(tools=tools).wire()}).encode()


@pytest.mark.parametrize("away", [None, b"rubbish", b'{"error":{"_tag":"E","message":"no"}}'])
async def test_while_the_tools_service_is_away_its_tools_are_not_gone(
    world: World, away: bytes | None
) -> None:
    """F-10, E-01: the last offer holds, so that the prefix stays; an empty offer is an answer too."""
    catalogs = Catalogs(world.eventlog, pool="default", timeout_s=1, fresh_s=0)

    async def names() -> list[str]:
        return list(await catalogs.load(QUESTION))

    set_answer(world, away)
    assert await names() == []
    set_answer(world, catalog_body(READ))
    assert await names() == ["read"]
    set_answer(world, away)
    assert await names() == ["read"]
    set_answer(world, catalog_body())
    assert await names() == []


async def test_a_changed_offer_is_asked_for_at_once(world: World) -> None:
    """D5: a model gets a tool in the turn after its registration, whatever was offered before."""
    catalogs = Catalogs(world.eventlog, pool="default", timeout_s=1, fresh_s=1000)
    await world.eventlog.tool_registrations.watch(catalogs.forget)
    set_answer(world, catalog_body())
    assert await catalogs.load(QUESTION) == {}
    set_answer(world, catalog_body(READ))
    assert await catalogs.load(QUESTION) == {}

    await world.eventlog.tool_registrations.put("elsewhere", "svc.read.-", b"{}")
    assert await catalogs.load(QUESTION) == {}
    await world.eventlog.tool_registrations.put("default", "svc.read.-", b"{}")

    assert list(await catalogs.load(QUESTION)) == ["read"]


async def test_an_offer_that_changed_during_the_question_is_not_kept(world: World) -> None:
    """D5: the answer may be from before the change."""
    catalogs = Catalogs(world.eventlog, pool="default", timeout_s=1, fresh_s=1000)
    await world.eventlog.tool_registrations.watch(catalogs.forget)

    async def answer_and_change(_body: bytes) -> bytes:
        await world.eventlog.tool_registrations.put("default", "svc.read.-", b"{}")
        return catalog_body()

    answerers = world.eventlog.requests.answerers  # type: ignore[attr-defined]
    answerers[subjects.tool_catalog("default")] = answer_and_change
    assert await catalogs.load(QUESTION) == {}
    set_answer(world, catalog_body(READ))

    assert list(await catalogs.load(QUESTION)) == ["read"]
