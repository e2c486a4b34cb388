"""The tools that a runner offers to a model while the tools service comes and goes."""

import json

import pytest

from fairlead_runner.calls.catalogs import Catalogs
from fairlead_schema import subjects
from fairlead_schema.tools.request import ToolCatalog, ToolInfo
from services.runner.tests.conftest import AT, World

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
    session = await world.session()

    async def names() -> list[str]:
        return list(await catalogs.load(AT, session, "build"))

    set_answer(world, away)
    assert await names() == []
    set_answer(world, catalog_body(READ))
    assert await names() == ["read"]
    set_answer(world, away)
    assert await names() == ["read"]
    set_answer(world, catalog_body())
    assert await names() == []
