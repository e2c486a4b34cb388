"""What the model is told, through real processes: files that change, services that die, moves."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.msg import Msg

from fairlead_eventlog.jetstream.client import open_client
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.record import Recorded
from fairlead_testing.session_driver import events_of, say, wait_until_settled
from fairlead_testing.stack import Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

CONFIG = """
[runner]
observe_timeout_s = 1.0

[context]
global_file = "{place}/everywhere.md"
timeout_s = 0.5

[skills]
config_directory = "{place}/own"

[reference.handbook]
path = "/srv/handbook"
description = "when in doubt"

[location]
roots = ["{temporary}"]
default = "{place}"

[tenant.acme.location]
roots = ["{place}/acme"]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """A runner, one tools service, the simulated provider."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place, config = Path(directory), write_config(Path(directory))
        async with stack(place / "state", config=config, sim=True) as running:
            yield running


def write_config(place: Path) -> Path:
    place.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG.format(place=place, temporary=gettempdir()))
    return config


def project(tmp_path: Path, name: str = "repo", rules: str | None = "Be brief.") -> Path:
    root = tmp_path / name
    (root / ".git").mkdir(parents=True)
    if rules is not None:
        (root / "AGENTS.md").write_text(rules)
    return root


async def create_session(up: Stack, place: Path) -> str:
    return await up.session(location={"directory": str(place)})


async def turn(up: Stack, session: str) -> list[Recorded]:
    """One prompt, answered; the whole log then."""
    await say(up, session, "hello")
    return await wait_until_settled(up, session)


def context_updates(log: list[Recorded]) -> list[str]:
    return [event.text for event in events_of(log, "context.updated")]


def baseline(log: list[Recorded]) -> dict[str, str]:
    """The parts of the newest baseline."""
    return {part.key: part.text for part in events_of(log, "context.initialised")[-1].baseline}


async def test_a_changed_file_is_one_message_at_the_next_boundary(
    up: Stack, tmp_path: Path
) -> None:
    """F-25, F-28, F-29, F-32, F-43, M-04, M-05: once for the active session, never for the idle."""
    place = project(tmp_path)
    session, idle = await create_session(up, place), await create_session(up, place)
    first, before = await turn(up, session), await turn(up, idle)
    (place / "AGENTS.md").write_text("Be verbose.")

    changed = await turn(up, session)
    again = await turn(up, session)
    (place / "AGENTS.md").unlink()
    revoked = await turn(up, session)

    parts = baseline(first)
    assert list(parts) == [
        "core/base",
        "core/agent",
        "core/model",
        "core/environment",
        "core/date",
        "core/instructions",
        "core/skills",
        "core/references",
    ]
    assert parts["core/instructions"].endswith("AGENTS.md:\nBe brief.")
    assert "sim/" in parts["core/model"]
    assert "handbook" in parts["core/references"]
    (update,) = context_updates(changed)
    assert update.endswith("AGENTS.md:\nBe verbose.")
    assert context_updates(again) == [update]
    assert len(context_updates(revoked)) == 2
    assert "no longer apply" in context_updates(revoked)[-1]
    assert len(events_of(revoked, "context.initialised")) == 1
    assert await up.events(idle) == before


async def test_a_dead_tools_service_makes_context_unavailable_and_not_gone(
    up: Stack, tmp_path: Path
) -> None:
    """F-10, F-37: the old baseline serves; when the service is back, one message tells the change.

    F-50: and what other services registered is known again.
    """
    place = project(tmp_path)
    session = await create_session(up, place)
    await turn(up, session)
    await ask_source_verb(up, "register", key="acme/tide", subject="fairlead.app.default.tide")
    up.up.kill("tools", sig=signal.SIGSTOP)
    (place / "AGENTS.md").write_text("Be kind.")

    away = await turn(up, session)
    fresh = await create_session(up, place)
    await say(up, fresh, "hello")
    waiting = await up.until(fresh, "execution.released")
    up.up.kill("tools", sig=signal.SIGKILL)
    await up.up.wait_ready()
    back = await turn(up, session)

    assert context_updates(away) == []
    assert events_of(waiting, "execution.released")[0].reason == "context-unavailable"
    assert events_of(waiting, "prompt.promoted") == []
    (update,) = context_updates(back)
    assert "Be kind." in update
    recovered = await wait_until_settled(up, fresh)
    assert baseline(recovered)["core/instructions"].endswith("Be kind.")
    registered = (await ask_source_verb(up, "remove", key="acme/other"))["data"]["sources"]
    assert [source["key"] for source in registered] == ["acme/tide"]
    await ask_source_verb(up, "remove", key="acme/tide")


async def test_a_moved_session_has_a_whole_new_baseline(up: Stack, tmp_path: Path) -> None:
    """F-44, M-01: of its destination, before anything promotes there; nothing of the old place."""
    here, there = project(tmp_path, "here", "Here."), project(tmp_path, "there", "There.")
    session = await create_session(up, here)
    await turn(up, session)

    await up.ask("session.move", {"sessionID": session, "location": {"directory": str(there)}})
    log = await turn(up, session)

    first, second = events_of(log, "context.initialised")
    assert "Here." in str(first)
    assert "There." in str(second)
    assert str(here) not in str(second)
    assert context_updates(log) == []
    moved = next(item.seq for item in log if item.event.type == "moved")
    begun = [item.seq for item in log if item.event.type == "context.initialised"][-1]
    promoted = [item.seq for item in log if item.event.type == "prompt.promoted"][-1]
    assert moved < begun < promoted


async def test_whatever_becomes_of_the_file_the_session_goes_on(up: Stack, tmp_path: Path) -> None:
    """M-07, M-08, M-09: a link out, a pipe, bytes, 100 MB: unavailable; then good again.

    A new session begins all the same, and knows what is missing.
    """
    place = project(tmp_path)
    rules = place / "AGENTS.md"
    session = await create_session(up, place)
    await turn(up, session)
    log: list[Recorded] = []

    for bad in ("link", "pipe", "bytes", "huge"):
        rules.unlink()
        match bad:
            case "link":
                rules.symlink_to("/etc/hostname")
            case "pipe":
                os.mkfifo(rules)
            case "bytes":
                rules.write_bytes(b"\xff\0")
            case _:
                await asyncio.to_thread(rules.touch)
                os.truncate(rules, 100 * 1024 * 1024)
        log = await turn(up, session)
    assert context_updates(log) == []
    fresh = await create_session(up, place)
    assert "cannot be read" in baseline(await turn(up, fresh))["core/instructions"]
    rules.unlink()
    rules.write_text("Be good.")

    for session_id in (session, fresh):
        (update,) = context_updates(await turn(up, session_id))
        assert "Be good." in update


async def test_instructions_below_join_after_something_there_was_read(
    up: Stack, tmp_path: Path
) -> None:
    """L-28: the log says where the session has read, so any runner finds them, and keeps them."""
    place = project(tmp_path)
    (place / "api").mkdir()
    (place / "api" / "AGENTS.md").write_text("Mind the API.")
    (place / "api" / "x.py").write_text("pass")
    session = await create_session(up, place)
    before = await turn(up, session)
    reading = """[[sim: tool=read args='{"path": "api/x.py"}' ; answer=done]] go"""

    for text in (reading, "hello"):
        await say(up, session, text)
        after = await wait_until_settled(up, session)

        (update,) = context_updates(after)
        assert update.endswith("api/AGENTS.md:\nMind the API.")
    assert context_updates(before) == []


class Weather:
    """A service that offers a source."""

    subject = "fairlead.app.default.weather"

    def __init__(self) -> None:
        self.said = b"{}"

    @asynccontextmanager
    async def serve(self, address: NatsAddress) -> AsyncIterator[None]:
        connection = await open_client(address, name="weather")
        await connection.subscribe(self.subject, cb=self._reply)
        await connection.flush()
        try:
            yield
        finally:
            await connection.close()

    def say(self, sky: str) -> None:
        observation = {
            "value": sky,
            "baseline": f"The sky is {sky}.",
            "update": f"The sky has become {sky}.",
            "removed": "There is no weather any more.",
        }
        self.said = json.dumps({"data": observation}).encode()

    async def _reply(self, request: Msg) -> None:
        await request.respond(self.said)


async def ask_source_verb(up: Stack, verb: str, **body: object) -> dict[str, Any]:
    return await up.ask(f"source.{verb}", body)


async def test_a_service_may_add_a_source_of_its_own(up: Stack, tmp_path: Path) -> None:
    """F-19, F-20, F-21, F-50: one per key, not believed blindly, revoked when it is taken back."""
    place = project(tmp_path)
    weather = Weather()
    weather.say("grey")
    source = {"key": "acme/weather", "subject": Weather.subject, "timeoutMs": 400}
    async with weather.serve(up.up.local_client):
        assert (await ask_source_verb(up, "register", **source))["data"]["key"] == "acme/weather"
        refused = await ask_source_verb(
            up, "register", key="acme/weather", subject="fairlead.app.default.other"
        )
        assert refused["error"]["_tag"] == "ConflictError"
        session = await create_session(up, place)
        first = await turn(up, session)
        assert baseline(first)["acme/weather"] == "The sky is grey."
        assert list(baseline(first))[-1] == "acme/weather"

        weather.say("blue")
        assert context_updates(await turn(up, session)) == ["The sky has become blue."]
        weather.said = b"rubbish"
        assert len(context_updates(await turn(up, session))) == 1
    assert len(context_updates(await turn(up, session))) == 1
    assert (await ask_source_verb(up, "remove", key="acme/weather"))["data"]["sources"] == []
    assert context_updates(await turn(up, session))[-1] == "There is no weather any more."


@pytest.mark.parametrize("directory", ["/", "/etc", "relative", f"{gettempdir()}/../etc"])
async def test_no_session_begins_or_moves_outside_the_roots(up: Stack, directory: str) -> None:
    """B2, D17: over HTTP and over NATS, with a reason that says what to configure."""
    body = {"location": {"directory": directory}}
    session = await up.session()

    created = await up.http.post("/api/session", json=body)
    moved = await up.http.post(f"/api/session/{session}/move", json=body)
    asked = await up.ask("session.create", body)

    assert (created.status_code, moved.status_code) == (400, 400)
    for message in (created.json()["message"], moved.json()["message"], asked["error"]["message"]):
        assert directory in message
        assert "outside the configured roots" in message or "relative path" in message


async def test_a_tenant_begins_no_session_in_the_directory_of_another(up: Stack) -> None:
    """B2: the roots of a tenant replace those for all, and no refusal names them to others."""
    body = {"location": {"directory": "/etc"}}

    others = await up.ask("session.create", body)
    own = await up.ask("session.create", {"location": {"directory": gettempdir()}}, tenant="acme")

    assert "acme" not in others["error"]["message"]
    assert "/acme" in own["error"]["message"]


async def test_a_link_that_is_turned_outside_shows_and_runs_nothing_there(
    up: Stack, tmp_path: Path
) -> None:
    """B2: the session was created inside. The worker looks again before a call and a context."""
    place, link = project(tmp_path), tmp_path / "link"
    link.symlink_to(place)
    session = await create_session(up, link)
    await turn(up, session)
    link.unlink()
    link.symlink_to("/etc")

    await say(up, session, '[[sim: tool=read args=\'{"path": "passwd"}\' ; answer=ok]]')
    log = await wait_until_settled(up, session)

    (failed,) = events_of(log, "tool.failed")
    assert "outside the configured roots" in failed.error.message
    assert not events_of(log, "tool.started")
    assert context_updates(log) == []


async def test_a_project_brings_no_tool_servers_and_no_settings(up: Stack, tmp_path: Path) -> None:
    """B15: only the operator's configuration names servers, whatever files a project has."""
    place, mark = project(tmp_path), tmp_path / "started"
    server = {"command": "/bin/sh", "args": ["-c", f"echo started > {mark}"]}
    toml = f'[mcp.evil]\ncommand = "/bin/sh"\nargs = {json.dumps(server["args"])}\n'
    for name in ("fairlead.toml", ".fairlead/fairlead.toml"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(toml)
    for name in (".mcp.json", "opencode.json"):
        servers = {"evil": server}
        (place / name).write_text(json.dumps({"mcpServers": servers, "mcp": servers}))

    session = await create_session(up, place)
    await turn(up, session)
    await say(up, session, "[[sim: tool=evil_run args='{}' ; answer=ok]]")
    log = await wait_until_settled(up, session)

    (failed,) = events_of(log, "tool.failed")
    assert "evil_run" in failed.error.message
    assert not mark.exists()
