"""Views of locations: a runner that names what it knows gets only what has changed."""

import json
import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_schema.context import ContextSample, SourceRegistration
from fairlead_schema.location import LocationRef
from fairlead_schema.tools.location_view import LocationView, ObserveLocation
from fairlead_schema.tools.request import ListTools, ToolInfo
from fairlead_service.config.configuration import Config
from fairlead_tools.app import list_tools
from fairlead_tools.context.location_views import LocationViews
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.registered import RegisteredSources
from fairlead_tools.registry.registry import Registry
from fairlead_tools.registry.tool import Tool


class Empty(BaseModel):
    """No fields."""


def probe(name: str) -> Tool:
    return Tool(name, "does nothing", Empty, Empty)


class Worker:
    """One tools service, as runners ask it about a location."""

    def __init__(self, directory: Path) -> None:
        self._config = Config.model_validate(
            {
                "context": {"global_file": None, "cache": str(directory / "cache"), "trust": "all"},
                "skills": {"config_directory": None},
                "location": {"roots": ["/"]},
            }
        )
        self._directory = directory
        self.observer = Observer(self._config)
        self.registry = Registry()
        self.registry.register(probe("first"))
        self._views = LocationViews(self.observer, self._list_tools)

    async def look(self, known: LocationView | None = None, **fields: object) -> LocationView:
        question = {
            "location": LocationRef(directory=str(self._directory)),
            "with_tools": True,
            "known_sample": known and known.sample_hash,
            "known_tools": known and known.tools_hash,
        }
        return await self._views.look(ObserveLocation.model_validate({**question, **fields}))

    async def _list_tools(self, command: ListTools) -> tuple[ToolInfo, ...]:
        return (await list_tools(self.registry, command, self._config.rules)).tools


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path)


async def test_what_is_known_is_answered_by_its_hash_alone(worker: Worker) -> None:
    whole = await worker.look()
    again = await worker.look(whole)

    assert whole.observations
    assert [tool.name for tool in whole.tools or ()] == ["first"]
    assert again.wire() == {"sampleHash": whole.sample_hash, "toolsHash": whole.tools_hash}


@pytest.mark.parametrize("how", ["edit", "same-size", "new", "replace", "remove"])
async def test_a_changed_file_is_seen_at_the_next_look(
    worker: Worker, tmp_path: Path, how: str
) -> None:
    """F-28: however soon and however slightly a file changes, the next boundary has it."""
    file = tmp_path / ("AGENTS.md" if how != "new" else "other.md")
    file.write_text("Be brief.")
    # Long ago, so that its text is kept between looks.
    os.utime(file, (1_000_000_000, 1_000_000_000))
    known = await worker.look()
    assert (await worker.look(known)).observations is None

    if how == "remove":
        file.unlink()
    elif how == "new":
        (tmp_path / "AGENTS.md").write_text("Be kind.")
    elif how == "replace":
        (tmp_path / "next").write_text("Be swift!")
        os.utime(tmp_path / "next", (1_000_000_000, 1_000_000_000))
        (tmp_path / "next").replace(file)
    else:
        file.write_text("Be quick." if how == "same-size" else "Be very brief.")
        os.utime(file, (1_000_000_000, 1_000_000_000))
    changed = await worker.look(known)

    assert changed.observations is not None
    assert changed.sample_hash != known.sample_hash
    assert (changed.tools, changed.tools_hash) == (None, known.tools_hash)


async def test_a_changed_tool_is_seen_at_the_next_look(worker: Worker) -> None:
    """D5: a registration changes the tools and not the sample."""
    known = await worker.look()
    registration = worker.registry.register(probe("second"))
    more = await worker.look(known)

    assert [tool.name for tool in more.tools or ()] == ["first", "second"]
    assert more.observations is None
    worker.registry.remove(registration)
    assert (await worker.look(more)).tools_hash == known.tools_hash


async def test_every_worker_gives_equal_content_an_equal_hash(
    worker: Worker, tmp_path: Path
) -> None:
    """A runner asks any worker, and one that has just started."""
    known = await worker.look()

    assert (await Worker(tmp_path).look(known)).wire() == (await worker.look(known)).wire()


async def test_an_unknown_hash_is_answered_in_full(worker: Worker) -> None:
    """Another release may have made it, or another content."""
    strange = LocationView(sample_hash="0" * 32, tools_hash="rubbish")

    whole = await worker.look(strange)

    assert whole.observations is not None
    assert whole.tools is not None


async def test_what_did_not_change_is_not_rendered_again(worker: Worker, tmp_path: Path) -> None:
    """The objects are the same, so nothing was made and nothing has to be compared."""
    file = tmp_path / "AGENTS.md"
    file.write_text("Be brief.")
    os.utime(file, (1_000_000_000, 1_000_000_000))

    first, second = await worker.look(), await worker.look()

    assert first.observations is not None
    assert second.observations is not None
    assert [id(one) for one in first.observations] == [id(one) for one in second.observations]
    assert [id(one) for one in first.tools or ()] == [id(one) for one in second.tools or ()]


async def test_a_runner_of_the_release_before_gets_its_sample(worker: Worker) -> None:
    """It names no hash, asks for no tools, and reads the observations alone."""
    view = await worker.look(with_tools=False)

    assert ContextSample.model_validate(view.wire()).observations == view.observations
    assert (view.tools, view.tools_hash) == (None, None)


async def test_a_loader_is_not_told_what_the_runner_knows(worker: Worker) -> None:
    """F-50: the question to a registered source is the same as before."""
    eventlog, asked = memory_eventlog(), list[dict[str, object]]()

    async def load(body: bytes) -> bytes:
        asked.append(json.loads(body))
        return b'{"data":null}'

    eventlog.requests.answerers["fairlead.app.default.x"] = load  # type: ignore[attr-defined]
    worker.observer.registered_sources = RegisteredSources(eventlog, 1.0)
    registration = SourceRegistration(key="acme/x", subject="fairlead.app.default.x")
    await worker.observer.registered_sources.register("default", registration)

    await worker.look(await worker.look())

    assert len(asked) == 2
    assert all(set(question) == {"location", "tenant", "touched"} for question in asked)


async def test_a_look_says_whether_the_directory_is_there(worker: Worker, tmp_path: Path) -> None:
    """D17: ingest asks before a session moves there. Others do not ask."""
    (tmp_path / "file").write_text("x")
    for name, there in (("", True), ("gone", False), ("file", False)):
        location = LocationRef(directory=str(tmp_path / name))
        view = await worker.look(location=location, with_tools=False, with_directory=True)
        assert view.is_directory is there
    assert (await worker.look()).is_directory is None
