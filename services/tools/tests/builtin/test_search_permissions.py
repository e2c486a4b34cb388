"""Searches show only what `read` would show without a person: each file found is judged by itself."""

from pathlib import Path
from typing import Any

import pytest

from fairlead_eventlog.ports import START
from fairlead_schema import subjects
from fairlead_schema.events import (
    PermissionAsked,
    PermissionReplied,
    SessionCreated,
    SessionEvent,
    ToolCalled,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor
from fairlead_schema.tools.request import ToolRequest
from fairlead_service.config.configuration import Config
from fairlead_tools.builtin import glob, grep
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.worker import ToolWorker
from fairlead_tools.files.search.search import SearchEngine
from fairlead_tools.registry.tool import Tool
from services.tools.tests.conftest import BEFORE, Harness, run_worker, wait_until

AT = Address("default", "ses_search")
FILES = ("notes.txt", ".env", "sub/prod.env", ".env.example", "sub/closed.txt")
RULES = {"permissions": [{"action": "read", "resource": "*/closed.txt", "effect": "deny"}]}


class SearchCall:
    """A session at a directory with secrets, and one call of a search tool."""

    def __init__(self, harness: Harness, place: Path, tool: Tool) -> None:
        self.harness = harness
        self.place = place
        self.tool = tool
        harness.registry.register(tool)
        for name in FILES:
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text("TOKEN=1\n")

    async def put(self, **fields: Any) -> None:  # noqa: ANN401
        """Write the session and its call, as ingest and a runner do."""
        location = LocationRef(directory=str(self.place))
        call = ToolCalled(
            assistant_message_id="msg_a",
            call_id="call_1",
            tool=self.tool.name,
            input=fields,
            provider=Executor(),
            agent="build",
            retry=self.tool.retry,
            revision=self.tool.info.revision,
        )
        created = SessionCreated(title="t", project_id="p", location=location)
        await self.harness.write(created, *BEFORE[1:], call, at=AT)

    async def serve(self) -> None:
        """Put one request and serve it to its end."""
        request = ToolRequest(
            session_id=AT.session_id, assistant_message_id="msg_a", call_id="call_1"
        )
        body = request.model_dump_json(by_alias=True).encode()
        harness = self.harness
        await harness.eventlog.work.put(subjects.tool(AT, "default"), body)
        harness.liveness.alive.add("wkr_a")
        policy = CallPolicy(Config.model_validate(RULES).rules)
        worker = ToolWorker("wkr_a", harness.eventlog, harness.registry, harness.settings, policy)
        async with run_worker(worker):
            await wait_until(lambda: not harness.jobs)

    async def last_event(self) -> SessionEvent:
        page = await self.harness.log.read(AT, after=START)
        return page.commits[-1].commit.events[-1].event

    async def found(self) -> list[str]:
        last = await self.last_event()
        assert isinstance(last, ToolSucceeded), last
        return [item["path"] for item in last.structured["value"]]


@pytest.fixture
def grep_call(harness: Harness, tmp_path: Path) -> SearchCall:
    return SearchCall(harness, tmp_path, grep.tool(SearchEngine(None)))


async def test_a_search_leaves_out_what_read_would_ask_about(grep_call: SearchCall) -> None:
    """B7: `grep . .` showed every `.env` file with a permission for `grep` alone."""
    await grep_call.put(pattern=".")
    await grep_call.serve()

    assert await grep_call.found() == [".env.example", "notes.txt"]
    last = await grep_call.last_event()
    assert "env" not in str(last).replace(".env.example", "").replace("event", "")


async def test_a_search_of_one_file_asks_as_read_of_that_file_does(grep_call: SearchCall) -> None:
    """B7: `grep . .env` needed only `grep`. The person's answer opens this file and no other."""
    await grep_call.put(pattern=".", path=".env")
    await grep_call.serve()
    ask = await grep_call.last_event()
    assert isinstance(ask, PermissionAsked)
    assert (ask.request.action, ask.request.resources) == ("read", (".env",))

    reply = PermissionReplied(request_id=ask.request.id, reply="once")
    await grep_call.harness.write(reply, at=AT)
    await grep_call.serve()

    assert await grep_call.found() == [".env"]


async def test_a_saved_approval_opens_files_for_searches_but_no_denied_ones(
    grep_call: SearchCall,
) -> None:
    """B7, K-06: what a person approved for always is found; what a rule denies never is."""
    await grep_call.harness.eventlog.approvals.save("default", "p", "read", ["*"])
    await grep_call.put(pattern="TOKEN")
    await grep_call.serve()

    assert await grep_call.found() == [".env", ".env.example", "notes.txt", "sub/prod.env"]


@pytest.mark.parametrize("pattern", ["TOKEN=1", "TOKEN=2"])
async def test_the_answer_says_nothing_about_a_file_that_is_left_out(
    grep_call: SearchCall, pattern: str
) -> None:
    """B7: a count of the files left out would tell whether a pattern fits a secret."""
    for name in ("notes.txt", ".env.example"):
        (grep_call.place / name).unlink()
    await grep_call.put(pattern=pattern)
    await grep_call.serve()

    last = await grep_call.last_event()
    assert isinstance(last, ToolSucceeded)
    assert last.structured == {"value": [], "truncated": False}
    assert [part.text for part in last.content if part.type == "text"] == [grep.NOTHING]


async def test_glob_leaves_out_what_read_would_ask_about(harness: Harness, tmp_path: Path) -> None:
    """B7: names of files that the agent may not read are not listed either."""
    call = SearchCall(harness, tmp_path, glob.tool(SearchEngine(None)))
    await call.put(pattern="**")
    await call.serve()

    assert await call.found() == ["notes.txt"]
