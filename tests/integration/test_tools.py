"""Every built-in tool once through a whole stack: called by a model, run, settled, seen on disk."""

import asyncio
import hashlib
import io
import json
import shlex
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
import pytest_asyncio
from PIL import Image

from fairlead_schema.events import ToolFailed, ToolSucceeded
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import FileContent, TextContent, managed_id
from fairlead_service import ids
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_testing.session_driver import events_of, say, wait_until_settled
from fairlead_testing.stack import TIMEOUT_S, Stack, stack
from fairlead_testing.web_server import Site, reply, site
from fairlead_tools.shell.command import marked_processes

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

KEY = "sk-never-told"
CONFIG = """
[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"

[location]
default = {work}

[tools]
web_private = true
media_bytes_max = 2000

[tools.websearch.acme]
url = {search}
api_key_env = "SEARCH_KEY"

[skills]
config_directory = {nowhere}
"""
SKILL = "---\nname: sailing\ndescription: how to sail\n---\n\nMind the wind.\n"
PATCH = """\
*** Begin Patch
*** Add File: patched/new.txt
+fresh
*** Update File: patched/old.txt
@@
-before
+after
*** Delete File: patched/gone.txt
*** End Patch"""


@dataclass(frozen=True)
class Ship:
    """A stack, the directory its sessions work in, and the web around it."""

    up: Stack
    work: Path
    web: Site

    async def call(self, tool: str, *, session: str | None = None, **arguments: object) -> Any:  # noqa: ANN401
        """The settlement of one call that a model makes before it answers."""
        session = session or await self.up.session()
        await self.ask(session, tool, **arguments)
        log = await wait_until_settled(self.up, session)
        assert events_of(log, "step.ended")[-1].finish == "stop", "the turn goes on after the call"
        return [
            recorded.event
            for recorded in log
            if isinstance(recorded.event, ToolSucceeded | ToolFailed)
        ][-1]

    async def ask(self, session: str, tool: str, **arguments: object) -> None:
        args = shlex.quote(json.dumps(arguments))
        await say(self.up, session, f"[[sim: tool={tool} args={args} ; answer=done]] go")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ship() -> AsyncIterator[Ship]:
    """A stack whose agent may do everything, in a directory of its own."""
    with (
        TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SEARCH_KEY", KEY)
        place = Path(directory)
        async with site() as web:
            config = write_config(place, web)
            async with stack(place / "state", config=config, sim=True) as up:
                yield Ship(up, place / "work", web)


def write_config(place: Path, web: Site) -> Path:
    place.chmod(0o755)
    (place / "work/patched").mkdir(parents=True)
    config = place / "fairlead.toml"
    values = {
        "work": str(place / "work"),
        "search": web.url("/search"),
        "nowhere": str(place / "nowhere"),
    }
    config.write_text(CONFIG.format(**{name: json.dumps(value) for name, value in values.items()}))
    return config


def shown_text(event: ToolSucceeded) -> str:
    """The text that the model is shown."""
    return "".join(part.text for part in event.content if isinstance(part, TextContent))


async def test_files_are_read_written_and_edited(ship: Ship) -> None:
    """L-13, L-29, L-32: what the log tells is what the disk holds."""
    text = 'a "quoted" line\nit\'s; the second\n'

    wrote = await ship.call("write", path="notes/a.txt", content=text)
    assert wrote.structured["existed"] is False
    assert (ship.work / "notes/a.txt").read_text() == text

    read = await ship.call("read", path="notes/a.txt")
    assert (shown_text(read), read.structured["encoding"]) == (text, "utf8")

    edited = await ship.call("edit", path="notes/a.txt", oldString="second", newString="last")
    assert edited.structured["replacements"] == 1
    assert (ship.work / "notes/a.txt").read_text() == text.replace("second", "last")
    assert not list(ship.work.rglob(".*.fairlead")), "no draft is left"


async def test_a_patch_adds_changes_and_deletes(ship: Ship) -> None:
    """L-39, L-49: all of it, and the text lists it."""
    place = ship.work / "patched"
    (place / "old.txt").write_text("before\n")
    (place / "gone.txt").write_text("unwanted\n")

    event = await ship.call("apply_patch", patchText=PATCH)

    assert [change["type"] for change in event.structured["applied"]] == ["add", "update", "delete"]
    assert sorted(file.name for file in place.iterdir()) == ["new.txt", "old.txt"]
    assert (place / "new.txt").read_text() == "fresh\n"
    assert (place / "old.txt").read_text() == "after\n"


async def test_files_are_found_by_name_and_by_content(ship: Ship) -> None:
    """L-60, L-62: relative in the value, absolute in the text."""
    (ship.work / "src").mkdir()
    (ship.work / "src/one.py").write_text("x = 1\nneedle = 2\n")
    (ship.work / "src/two.txt").write_text("needle\n")

    globbed = await ship.call("glob", pattern="src/*.py")
    assert [match["path"] for match in globbed.structured["value"]] == ["src/one.py"]
    assert str(ship.work / "src/one.py") in shown_text(globbed)

    grepped = await ship.call("grep", pattern="^needle", path="src", include="*.py")
    (line,) = grepped.structured["value"]
    assert (line["path"], line["line"]) == ("src/one.py", 2)


async def test_a_command_runs_in_the_location_and_is_told_no_secret(ship: Ship) -> None:
    """L-54, L-58: the environment of the service is not the command's."""
    event = await ship.call("bash", command="pwd; env; exit 3")

    assert event.structured == {"exit": 3, "truncated": False}
    assert shown_text(event).startswith(f"{ship.work.resolve()}\n")
    assert KEY not in shown_text(event)
    assert "SEARCH_KEY" not in shown_text(event)


async def test_a_killed_worker_leaves_no_process_and_the_call_is_interrupted(ship: Ship) -> None:
    """E-20, L-58: what runs once does not run again, and nothing of it runs on."""
    session = await ship.up.session()
    command = "echo run >> runs.txt; setsid sleep 300 & sleep 300"
    await ship.ask(session, "bash", command=command)
    async with asyncio.timeout(TIMEOUT_S):
        while not (ship.work / "runs.txt").exists():
            await asyncio.sleep(0.05)

    ship.up.up.kill("tools", 0, signal.SIGKILL)

    log = await wait_until_settled(ship.up, session)
    (failed,) = events_of(log, "tool.failed")
    assert failed.error.message == INTERRUPTED_TOOL
    assert (ship.work / "runs.txt").read_text() == "run\n"
    mark = f"{session}:{failed.assistant_message_id}:{failed.call_id}"
    async with asyncio.timeout(TIMEOUT_S):
        while await asyncio.to_thread(marked_processes, mark):
            await asyncio.sleep(0.05)


async def test_a_list_of_tasks_is_kept(ship: Ship) -> None:
    """L-67, N-23: replaced as a whole, and readable."""
    session = await ship.up.session()
    task = {"content": "sail", "status": "pending", "priority": "high"}

    event = await ship.call("todowrite", session=session, todos=[task])

    assert json.loads(shown_text(event)) == [task]
    async with asyncio.timeout(TIMEOUT_S):
        while (await ship.up.http.get(f"/api/session/{session}/todo")).json()["data"] != [task]:
            await asyncio.sleep(0.05)


async def test_a_question_is_answered_over_http(ship: Ship) -> None:
    """L-68, L-69, N-24, N-27: the answer settles the call, and a second one finds nothing."""
    session = await ship.up.session()
    options = [{"label": "port"}, {"label": "starboard"}]
    question = {"question": "Which side?", "header": "side", "options": options}
    await ship.ask(session, "question", questions=[question])
    log = await ship.up.until(session, "question.asked")
    (waiting,) = (await ship.up.http.get(f"/api/session/{session}/question")).json()["data"]
    assert waiting["id"] == events_of(log, "question.asked")[0].request.id

    url = f"/api/session/{session}/question/{waiting['id']}"
    answered = await ship.up.http.post(f"{url}/reply", json={"answers": [["port"]]})

    assert answered.status_code == httpx.codes.NO_CONTENT
    log = await wait_until_settled(ship.up, session)
    (event,) = events_of(log, "tool.succeeded")
    assert event.structured == {"answers": [["port"]]}
    assert shown_text(event) == "Which side? → port"
    rejected = await ship.up.http.post(f"{url}/reject")
    assert rejected.status_code == httpx.codes.NOT_FOUND


async def test_an_interrupt_ends_a_call_that_waits_for_a_person(ship: Ship) -> None:
    """E-16, K-26, N-24: nobody held it, and still it is settled and its question gone."""
    session = await ship.up.session()
    await ship.ask(session, "question", questions=[{"question": "Which side?"}])
    log = await ship.up.until(session, "execution.released")
    (question,) = events_of(log, "question.asked")

    await ship.up.http.post(f"/api/session/{session}/interrupt")

    log = await ship.up.until(session, "tool.failed")
    assert events_of(log, "tool.failed")[0].error.message == INTERRUPTED_TOOL
    log = await wait_until_settled(ship.up, session)
    assert [event.request_id for event in events_of(log, "question.rejected")] == [
        question.request.id
    ]
    url = f"/api/session/{session}/question"
    assert (await ship.up.http.get(url)).json() == {"data": []}
    body = {"answers": [["port"]]}
    late = await ship.up.http.post(f"{url}/{question.request.id}/reply", json=body)
    assert late.status_code == httpx.codes.NOT_FOUND


async def test_a_skill_is_loaded(ship: Ship) -> None:
    """L-71, L-73: its words, its place and what lies beside it."""
    place = ship.work / ".fairlead/skills/sailing"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(SKILL)
    (place / "chart.txt").write_text("here be dragons")

    event = await ship.call("skill", name="sailing")
    unknown = await ship.call("skill", name="flying")

    assert "Mind the wind." in shown_text(event)
    assert str(place.resolve() / "chart.txt") in shown_text(event)
    assert unknown.error.message == "Unable to load skill flying"


async def test_a_page_is_fetched(ship: Ship) -> None:
    """L-74, L-76: as Markdown, where private addresses are allowed; a long one is bounded."""
    ship.web.pages["/page"] = reply(b"<h1>Tides</h1><script>no</script><p>High at noon.</p>")
    long = "".join(f"line {number}\n" for number in range(20_000))
    ship.web.pages["/long"] = reply(long.encode(), mime="text/plain")

    event = await ship.call("webfetch", url=ship.web.url("/page"))
    bounded = await ship.call("webfetch", url=ship.web.url("/long"))

    assert shown_text(event).strip() == "# Tides\n\nHigh at noon."
    assert len(shown_text(bounded).encode()) <= 51_200
    assert len(json.dumps(bounded.structured)) < 1_000, "the log holds a long page nowhere"
    (path,) = bounded.output_paths
    assert (await ship.up.http.get(f"/api/tool-output/{managed_id(path)}")).text == long


async def test_the_web_is_searched(ship: Ship) -> None:
    """L-80, L-82: with the key of the service, which nobody is told."""
    result = {"content": [{"type": "text", "text": "Tide tables"}]}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
    ship.web.pages["/search"] = reply(body, mime="application/json")

    event = await ship.call("websearch", query="tides")

    assert event.structured == {"provider": "acme", "output": "Tide tables"}
    headers, sent = next(request[1:] for request in ship.web.asked if request[0] == "/search")
    assert KEY in headers["authorization"]
    assert json.loads(sent)["params"]["arguments"]["query"] == "tides"
    assert KEY not in event.model_dump_json()


async def test_a_kept_output_is_read_and_searched_by_its_path(ship: Ship) -> None:
    """J-30: what was cut out of a result is there for the next call, and only for its tenant."""
    session = await ship.up.session()
    event = await ship.call("bash", session=session, command="seq 1 30000")
    (path,) = event.output_paths

    read = await ship.call("read", session=session, path=path, offset=15_000, limit=2)
    grepped = await ship.call("grep", session=session, path=path, pattern="^12345$")
    nowhere = await ship.call("read", session=session, path=f"{path}x")

    page = await ship.call("read", session=session, path=path)

    assert read.structured["content"] == "15000\n15001"
    assert (page.structured["next"], page.output_paths) == (2001, None)
    assert "\n1000\n1001\n" in shown_text(page), "a page is shown whole"
    (line,) = grepped.structured["value"]
    assert (line["path"], line["line"], line["text"]) == (path, 12_345, "12345")
    assert nowhere.error.message == f"Unable to read {path}x"


async def test_a_kept_output_is_purged_with_its_session(ship: Ship) -> None:
    """H-29, J-35: nor one that no settlement names, because its call failed or was settled before."""
    session, unnamed = await ship.up.session(), ids.output_id()
    event = await ship.call("bash", session=session, command="seq 1 3000")

    async def send_late() -> AsyncIterator[bytes]:
        yield b"late"

    at = Address(DEFAULT_TENANT, session)
    await ship.up.eventlog.outputs.put(at, unnamed, send_late(), mime="text/plain")
    named = managed_id(event.output_paths[0])
    urls = [f"/api/tool-output/{output_id}" for output_id in (named, unnamed)]
    for url in urls:
        assert (await ship.up.http.get(url)).status_code == httpx.codes.OK

    await ship.up.http.delete(f"/api/session/{session}", params={"purge": "true"})

    async with asyncio.timeout(TIMEOUT_S):
        for url in urls:
            while (await ship.up.http.get(url)).status_code != httpx.codes.NOT_FOUND:
                await asyncio.sleep(0.05)


async def test_a_large_image_goes_by_reference(ship: Ship) -> None:
    """J-29, L-21: the log names it, the store has it, and the session goes on."""
    image = Image.frombytes("RGB", (40, 40), hashlib.shake_128(b"rough").digest(4800))
    raw = io.BytesIO()
    image.save(raw, "PNG")
    (ship.work / "chart.png").write_bytes(raw.getvalue())

    event = await ship.call("read", path="chart.png")

    _said, shown = event.content
    assert isinstance(shown, FileContent)
    assert event.output_paths == (shown.uri,)
    stored = await ship.up.http.get(f"/api/tool-output/{managed_id(shown.uri)}")
    assert (stored.headers["content-type"], stored.content) == ("image/png", raw.getvalue())
    again = await ship.call("read", path=shown.uri)
    assert isinstance(again, ToolSucceeded)


@pytest.mark.parametrize(
    ("tool", "asked", "message"),
    [
        ("nowhere", {}, "Unknown tool: nowhere"),
        ("read", {"path": "../../etc/passwd"}, "Unable to read ../../etc/passwd"),
        ("read", {"path": 7}, "Invalid tool input: path: Input should be a valid string"),
        ("bash", {"command": "true", "timeout": 10**9}, "Invalid tool input: timeout"),
        ("webfetch", {"url": "file:///etc/passwd"}, "http"),
    ],
)
async def test_what_cannot_be_done_is_told_to_the_model(
    ship: Ship, tool: str, asked: dict[str, Any], message: str
) -> None:
    """J-10, J-17, L-01, L-75: a typed failure, and the turn goes on."""
    event = await ship.call(tool, **asked)

    assert isinstance(event, ToolFailed)
    assert message in event.error.message
