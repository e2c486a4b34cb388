"""What a runner asks about a location: everything in one request, and only what it does not know."""

import json
from typing import Any

import pytest

from fairlead_runner.calls.catalogs import Catalogs
from fairlead_runner.turn.context_observer import ContextObserver, ObservedLocation
from fairlead_schema import subjects
from fairlead_schema.context import ContextSample, ObserveContext, ObservedSource, UnavailableSource
from fairlead_schema.events import SessionMoved
from fairlead_schema.location import LocationRef
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.tools.location_view import LocationView
from fairlead_schema.tools.request import ToolCatalog
from services.runner.tests.conftest import DATE, World
from services.runner.tests.tool_calls import READ

QUESTION = ObserveContext(location=LocationRef(directory="/w"), agent="build")
WHOLE = LocationView(observations=(DATE,), sample_hash="s1", tools=(READ,), tools_hash="t1")


class ToolsService:
    """Answers questions about locations with one view after the other; the last one stays."""

    def __init__(self, world: World, *views: LocationView | None) -> None:
        self.questions: list[dict[str, Any]] = []
        self.listed = 0
        self._views = list(views)
        world.answer(self._answer)
        answerers = world.eventlog.requests.answerers  # type: ignore[attr-defined]
        answerers[subjects.tool_catalog("default")] = self._list_tools
        catalogs = Catalogs(world.eventlog, pool="default", timeout_s=1)
        self._observer = ContextObserver(world.eventlog, catalogs, pool="default", timeout_s=1)
        self._world = world

    async def look(self, question: ObserveContext = QUESTION) -> ObservedLocation:
        return await self._observer.observe(await self._world.session(), question)

    async def _answer(self, body: bytes) -> bytes:
        self.questions.append(json.loads(body))
        view = self._views.pop(0) if len(self._views) > 1 else self._views[0]
        return b"rubbish" if view is None else json.dumps({"data": view.wire()}).encode()

    async def _list_tools(self, _body: bytes) -> bytes:
        self.listed += 1
        return json.dumps({"data": ToolCatalog(tools=(READ,)).wire()}).encode()


async def test_what_a_runner_knows_is_named_by_its_hash_and_not_sent_again(world: World) -> None:
    """F-25: the sample and the tools of the earlier answer hold, and nothing else is asked."""
    service = ToolsService(world, WHOLE, LocationView(sample_hash="s1", tools_hash="t1"))

    first, second = await service.look(), await service.look()

    assert first == (ContextSample(observations=(DATE,)), {"read": READ})
    assert second == first
    known = [(one.get("knownSample"), one.get("knownTools")) for one in service.questions]
    assert known == [(None, None), ("s1", "t1")]
    assert service.listed == 0


async def test_only_what_changed_replaces_what_is_known(world: World) -> None:
    """F-28: a new sample comes beside known tools, and new tools beside a known sample."""
    later = ObservedSource(key="core/date", value=2, baseline="Day 2", update="Now day 2")
    service = ToolsService(
        world,
        WHOLE,
        LocationView(observations=(later,), sample_hash="s2", tools_hash="t1"),
        LocationView(sample_hash="s2", tools=(), tools_hash="t2"),
    )

    seen = [await service.look() for _ in range(3)]

    assert [one.sample.observations for one in seen] == [(DATE,), (later,), (later,)]
    assert [list(one.tools) for one in seen] == [["read"], ["read"], []]


async def test_each_question_has_its_own_sample(world: World) -> None:
    """F-23: another time zone is another sample, and the tools are those of the same place."""
    service = ToolsService(world, WHOLE)
    await service.look()

    await service.look(QUESTION.model_copy(update={"timezone": "Europe/Oslo"}))

    assert service.questions[1].get("knownSample") is None
    assert service.questions[1]["knownTools"] == "t1"


async def test_a_service_of_the_release_before_is_asked_for_its_tools_too(world: World) -> None:
    """It answers with all observations, without hashes and without tools."""
    service = ToolsService(world, LocationView(observations=(DATE,)))

    first, second = await service.look(), await service.look()

    assert first == second == (ContextSample(observations=(DATE,)), {"read": READ})
    assert service.listed == 1
    assert "knownSample" not in service.questions[1]


@pytest.mark.parametrize(
    "answer", [None, LocationView(sample_hash="another", tools_hash="t1"), LocationView()]
)
async def test_without_a_usable_answer_sources_are_unavailable_and_tools_stay(
    world: World, answer: LocationView | None
) -> None:
    """F-10, F-37: "as before" about something that the runner never had is no answer."""
    service = ToolsService(world, WHOLE, answer)
    await service.look()

    seen = await service.look()

    (source,) = seen.sample.observations
    assert isinstance(source, UnavailableSource)
    assert list(seen.tools) == ["read"]
    assert service.listed == 0


async def test_a_place_that_was_never_seen_gets_its_tools_though_it_cannot_be_observed(
    world: World,
) -> None:
    """E-01: an observation that fails does not take the tools out of a request."""
    service = ToolsService(world, None)

    assert list((await service.look()).tools) == ["read"]


async def test_each_pool_is_asked_for_its_own_sample_and_tools(world: World) -> None:
    """Another pool has other disks and another image, although the directory has the same name."""
    service = ToolsService(world, WHOLE)
    await service.look()
    moved = SessionMoved(location=QUESTION.location, pool="gpu")
    await world.eventlog.status.finalise(LEVEL_NEWEST)
    await world.write(moved)

    silent = await service.look()
    answerers = world.eventlog.requests.answerers  # type: ignore[attr-defined]
    answerers[subjects.observe("gpu")] = answerers[subjects.observe("default")]
    seen = await service.look()

    (source,) = silent.sample.observations
    assert isinstance(source, UnavailableSource)
    assert source.reason.startswith("no worker of the pool gpu answers: start one with tools.pool")
    assert silent.tools == {}
    assert service.questions[1].get("knownSample") is None
    assert list(seen.tools) == ["read"]
