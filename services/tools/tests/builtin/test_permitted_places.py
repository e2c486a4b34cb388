"""A call touches only the file that was permitted, even when links change in between."""

from pathlib import Path

import pytest

from fairlead_eventlog.ports import START
from fairlead_schema import subjects
from fairlead_schema.events import (
    PermissionAsked,
    PermissionReplied,
    SessionCreated,
    SessionEvent,
    ToolCalled,
    ToolFailed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor
from fairlead_schema.tools.request import ToolRequest
from fairlead_service.config.configuration import Config
from fairlead_tools.builtin import write
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.worker import ToolWorker
from services.tools.tests.conftest import BEFORE, Harness, run_worker, wait_until

AT = Address("default", "ses_linked")
RULES = Config.model_validate(
    {"permissions": [{"action": "edit", "resource": "*", "effect": "ask"}]}
).rules


class LinkedLocation:
    """A location with a link in it, and a session that writes through the link."""

    def __init__(self, harness: Harness, place: Path) -> None:
        self.harness = harness
        self.place = place
        for name in ("inner", "other", "outside"):
            (self.work.parent if name == "outside" else self.work).joinpath(name).mkdir(
                parents=True
            )
        self.turn_link("inner")

    @property
    def work(self) -> Path:
        return self.place / "work"

    def turn_link(self, to: str) -> None:
        """Turn the link to another directory."""
        link = self.work / "link"
        link.unlink(missing_ok=True)
        link.symlink_to(self.place / "outside" if to == "outside" else self.work / to)

    def written_files(self) -> list[str]:
        return sorted(str(path.relative_to(self.place)) for path in self.place.rglob("a.txt"))

    async def put_call(self) -> None:
        """Write the call, as a runner does."""
        tool = write.tool()
        self.harness.registry.register(tool)
        place = LocationRef(directory=str(self.work))
        creation = SessionCreated(title="t", project_id="p", location=place)
        call = ToolCalled(
            assistant_message_id="msg_a",
            call_id="call_1",
            tool=tool.name,
            input={"path": "link/a.txt", "content": "text"},
            provider=Executor(),
            agent="build",
            retry=tool.retry,
            revision=tool.info.revision,
        )
        await self.harness.write(creation, *BEFORE[1:], call, at=AT)

    async def serve_all(self) -> None:
        """Put one request and serve it to its end."""
        request = ToolRequest(
            session_id=AT.session_id, assistant_message_id="msg_a", call_id="call_1"
        )
        body = request.model_dump_json(by_alias=True).encode()
        await self.harness.eventlog.work.put(subjects.tool(AT, "default"), body)
        harness = self.harness
        harness.liveness.alive.add("wkr_a")
        worker = ToolWorker(
            "wkr_a", harness.eventlog, harness.registry, harness.settings, CallPolicy(RULES)
        )
        async with run_worker(worker):
            await wait_until(lambda: not harness.jobs)

    async def permit_last_ask(self) -> None:
        """Permit the last ask, as a person does."""
        ask = (await self.events(PermissionAsked))[-1]
        assert isinstance(ask, PermissionAsked)
        await self.harness.write(PermissionReplied(request_id=ask.request.id, reply="once"), at=AT)

    async def asked_resources(self) -> list[tuple[str, ...]]:
        asks = await self.events(PermissionAsked)
        return [ask.request.resources for ask in asks if isinstance(ask, PermissionAsked)]

    async def events(self, *kinds: type[SessionEvent]) -> list[SessionEvent]:
        page = await self.harness.log.read(AT, after=START)
        all_events = (
            recorded.event for commit in page.commits for recorded in commit.commit.events
        )
        return [event for event in all_events if isinstance(event, kinds)]


@pytest.fixture
async def linked_location(harness: Harness, tmp_path: Path) -> LinkedLocation:
    linked_location = LinkedLocation(harness, tmp_path)
    await linked_location.put_call()
    await linked_location.serve_all()
    assert await linked_location.asked_resources() == [("inner/a.txt",)]
    return linked_location


async def test_what_was_permitted_is_written(linked_location: LinkedLocation) -> None:
    """L-05, L-06, K-15: the call writes the file that the link led to when the person was asked."""
    await linked_location.permit_last_ask()
    await linked_location.serve_all()

    assert linked_location.written_files() == ["work/inner/a.txt"]
    assert len(await linked_location.events(ToolSucceeded)) == 1


async def test_a_link_exchanged_after_the_permission_is_asked_about_anew(
    linked_location: LinkedLocation,
) -> None:
    """L-05, K-15: a permission is for the file and not for its name."""
    await linked_location.permit_last_ask()
    linked_location.turn_link("other")
    await linked_location.serve_all()

    assert await linked_location.asked_resources() == [("inner/a.txt",), ("other/a.txt",)]
    assert (linked_location.written_files(), await linked_location.events(ToolStarted)) == ([], [])


@pytest.mark.parametrize("to", ["other", "outside"])
async def test_a_link_exchanged_when_the_call_has_begun_is_refused(
    linked_location: LinkedLocation, to: str
) -> None:
    """L-03, L-05: the tool checks the place again when it opens the file."""
    await linked_location.permit_last_ask()

    async def exchange(drafts: tuple[Draft, ...]) -> None:
        if isinstance(drafts[0].event, ToolStarted):
            linked_location.turn_link(to)

    linked_location.harness.log.before = exchange
    await linked_location.serve_all()

    (failure,) = await linked_location.events(ToolFailed)
    assert isinstance(failure, ToolFailed)
    assert failure.error.message == "Unable to write link/a.txt"
    assert linked_location.written_files() == []
