"""Cold storage through whole stacks: killed at every step, a session is whole in the log or in its file."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from fairlead_cli.cold.sessions import SessionRequests
from fairlead_cli.cold.trees import restore_tree, store_tree
from fairlead_cli.errors import CommandError
from fairlead_cli.exports.export_file import verify_file
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_eventlog.feed.progress import has_passed
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.streams import EVENTS
from fairlead_schema import subjects
from fairlead_schema.errors import Conflict, SessionIsStored
from fairlead_schema.events import BY_TYPE, ChildFinished
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.record import event_json
from fairlead_schema.subjects import Address
from fairlead_session.verify.verify import verify
from fairlead_testing.exports import export_lines, growing_life
from fairlead_testing.stack import TIMEOUT_S, Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

TURNS = 1_500
COUNT = json.dumps({"command": "seq 1 30000"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    place: Path = tmp_path_factory.mktemp("stack")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text("[projector]\nfeed_lag_s = 0\n")
    async with stack(place / "state", config=config, sim=True) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def cold(up: Stack) -> AsyncIterator[SessionRequests]:
    connection = AsyncHttpConnection(up.up.http, up.up.token, patience_s=10.0)
    yield SessionRequests(connection, wait_s=TIMEOUT_S)
    await connection.aclose()


async def begin(up: Stack, *argv: str) -> asyncio.subprocess.Process:
    """Start `fairlead cold` as a process of its own."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "cold", *argv),
        *("--http", up.up.http, "--token", str(up.up.token), "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def fairlead(up: Stack, *argv: str) -> tuple[int, list[dict[str, Any]], str]:
    process = await begin(up, *argv)
    async with asyncio.timeout(TIMEOUT_S):
        out, error = await process.communicate()
    lines = [json.loads(line) for line in out.decode().splitlines()]
    return process.returncode or 0, lines, error.decode()


async def long_session(up: Stack, session: str) -> list[dict[str, Any]]:
    """A session whose export and restore take a while, and its events."""
    lines = export_lines({session: growing_life(TURNS, "/")}, scope="session")
    answer = await up.http.post(
        "/api/session/import",
        content=b"".join(lines),
        headers={"content-type": "application/octet-stream"},
        timeout=TIMEOUT_S,
    )
    assert answer.status_code == 200, answer.text
    return [event_json(event) for event in await up.events(session)]


async def spoken_session(up: Stack) -> tuple[str, list[dict[str, Any]]]:
    """A session with one answer, and its events."""
    session = await up.session()
    await up.client.prompt(session, "Say hello")
    return session, [event_json(event) for event in await up.wait_until_rested(session)]


def names(directory: Path, suffix: str = "") -> list[str]:
    """The files of a directory whose names end so."""
    return [path.name for path in directory.iterdir() if path.name.endswith(suffix)]


async def end_of(up: Stack, session: str) -> int:
    return (await up.eventlog.log.end(Address(DEFAULT_TENANT, session))).seq


async def fed_ids(up: Stack, session: str) -> set[str]:
    """The ids of the events of a session in the public feed."""
    async with open_link(up.up.operator, name="test") as link:
        of_session = subjects.event(Address(DEFAULT_TENANT, session), ">")
        messages, left = await link.read_subject(EVENTS.name, of_session, first=1, batch=1000)
    assert left == 0
    return {json.loads(message.payload)["id"] for message in messages}


async def check_whole(up: Stack, session: str, before: list[dict[str, Any]]) -> None:
    """The session has the events of before, and takes the next prompt."""
    events = [event for event in await up.events(session) if event.seq]
    assert [event_json(event) for event in events] == before
    turns = sum(event["type"] == "step.ended" for event in before)
    await up.client.prompt(session, "Go on")
    await up.until(session, "step.ended", count=turns + 1)
    assert verify(await up.wait_until_rested(session)) == []


async def kill(process: asyncio.subprocess.Process) -> None:
    process.kill()
    await process.communicate()


async def test_a_store_that_was_killed_before_its_marker_leaves_the_session_in_the_log(
    up: Stack, cold: SessionRequests, tmp_path: Path
) -> None:
    """ADR 0084: SIGKILL of the command while it writes its file, and between the file and the marker."""
    session = "ses_killedout"
    before = await long_session(up, session)
    process = await begin(up, "store", session, "--to", str(tmp_path))
    async with asyncio.timeout(TIMEOUT_S):
        while not names(tmp_path, ".part"):
            await asyncio.sleep(0.001)
    await kill(process)
    assert await end_of(up, session) == len(before)

    # Ingest is paused, so that the command comes to its marker and no further.
    ingest = up.up.pid("ingest", 0)
    assert ingest is not None
    process = await begin(up, "store", session, "--to", str(tmp_path))
    async with asyncio.timeout(TIMEOUT_S):
        while not names(tmp_path, ".part"):
            await asyncio.sleep(0.001)
        up.up.kill("ingest", 0, signal.SIGSTOP)
        while not (files := names(tmp_path, ".fairlead.jsonl")):
            await asyncio.sleep(0.01)
    await kill(process)
    await up.restart("ingest", 0, signal.SIGKILL)
    assert verify_file(tmp_path / files[0]).sessions[session].seq == len(before)
    assert await end_of(up, session) == len(before)

    code, lines, error = await fairlead(up, "store", session, "--to", str(tmp_path))
    assert (code, lines[0]["state"]) == (0, "stored"), error
    assert await restore_tree(cold, session, tmp_path)
    await check_whole(up, session, before)


async def test_a_marker_whose_projector_was_killed_is_erased_by_the_next_one(
    up: Stack, cold: SessionRequests, tmp_path: Path
) -> None:
    """ADR 0084: SIGKILL of projector and command after the marker. The next run says that all is done."""
    session, before = await spoken_session(up)
    at = Address(DEFAULT_TENANT, session)
    position = await up.eventlog.log.last_commit_position(at)
    async with asyncio.timeout(TIMEOUT_S):
        while not await has_passed(up.eventlog, at, position):
            await asyncio.sleep(0.05)
    up.up.kill("projector", 0, signal.SIGSTOP)
    process = await begin(up, "store", session, "--to", str(tmp_path))
    async with asyncio.timeout(TIMEOUT_S):
        while await end_of(up, session):
            await asyncio.sleep(0.01)
    await kill(process)
    entries = [entry async for entry in up.eventlog.shards.session_entries(at, after=0)]
    assert len(entries) > 1
    with pytest.raises(SessionIsStored):
        await up.client.prompt(session, "Too late")
    await up.restart("projector", 0, signal.SIGKILL)

    async with asyncio.timeout(TIMEOUT_S):
        while len([entry async for entry in up.eventlog.shards.session_entries(at, after=0)]) > 1:
            await asyncio.sleep(0.02)
    code, lines, error = await fairlead(up, "store", session, "--to", str(tmp_path))
    assert (code, lines[0]["state"]) == (0, "was stored already"), error
    await restore_tree(cold, session, tmp_path)
    await check_whole(up, session, before)


async def test_the_feed_gets_every_event_of_a_session_that_leaves(
    up: Stack, cold: SessionRequests, tmp_path: Path
) -> None:
    """ADR 0084: a publisher that stands still holds the marker up, and then nothing is missing."""
    session, _events = await spoken_session(up)
    await up.http.get(f"/api/session/{session}")
    up.up.kill("projector", 0, signal.SIGSTOP)
    await up.client.prompt(session, "Say more")
    await up.until(session, "step.ended", count=2)
    before = [event_json(event) for event in await up.wait_until_rested(session)]
    process = await begin(up, "store", session, "--to", str(tmp_path))
    async with asyncio.timeout(TIMEOUT_S):
        while not names(tmp_path, ".fairlead.jsonl"):
            await asyncio.sleep(0.01)
    await asyncio.sleep(1)
    assert await end_of(up, session) == len(before)
    await up.restart("projector", 0, signal.SIGKILL)
    async with asyncio.timeout(TIMEOUT_S):
        await process.communicate()
    assert process.returncode == 0
    published = {
        event["id"] for event in before if BY_TYPE[event["type"], 1].visibility != "private"
    }
    assert published == await fed_ids(up, session)

    await restore_tree(cold, session, tmp_path)
    assert published == await fed_ids(up, session)
    await check_whole(up, session, before)


@pytest.mark.parametrize("service", ["gateway", "ingest", "projector"])
async def test_a_restore_that_was_killed_goes_on(
    up: Stack, cold: SessionRequests, tmp_path: Path, service: str
) -> None:
    """ADR 0084: SIGKILL of each service in the middle of a restore, and of the command itself."""
    session = f"ses_killedback{service}"
    before = await long_session(up, session)
    assert await store_tree(cold, session, tmp_path)
    process = await begin(up, "restore", session, "--from", str(tmp_path))
    async with asyncio.timeout(TIMEOUT_S):
        while not await end_of(up, session):
            await asyncio.sleep(0)
    await up.restart(service, 0, signal.SIGKILL)
    with suppress(ProcessLookupError):
        await kill(process)
    seq = await end_of(up, session)
    assert service != "gateway" or seq < len(before)
    if seq < len(before):
        refused = await up.http.post(f"/api/session/{session}/resume", json={})
        assert refused.json()["_tag"] == "SessionStoredError"
        history = await up.http.get(
            f"/api/session/{session}/history", params={"after": len(before)}
        )
        assert history.json()["_tag"] == "SessionStoredError", seq

    code, _lines, error = await fairlead(up, "restore", session, "--from", str(tmp_path))
    assert code == 0, error
    await check_whole(up, session, before)


async def test_an_edited_or_foreign_file_restores_nothing(
    up: Stack, cold: SessionRequests, tmp_path: Path
) -> None:
    """The command refuses it, and so do gateway and ingest if somebody sends it by hand."""
    session, before = await spoken_session(up)
    other = tmp_path / "other"
    other.mkdir()
    (moved,) = await store_tree(cold, session, tmp_path)
    good = moved.file.path.read_bytes()

    async def send(body: bytes) -> httpx.Response:
        return await up.http.post(
            "/api/session/import",
            params={"restore": "true"},
            content=body,
            headers={"content-type": "application/octet-stream"},
        )

    edited = good.replace(b"Say hello", b"Say jello")
    moved.file.path.write_bytes(edited)
    code, _lines, error = await fairlead(up, "restore", session, "--from", str(tmp_path))
    assert code == 1
    assert "Checksum" in error
    assert (await send(edited)).json()["_tag"] == "InvalidExportError"
    lines = export_lines({session: growing_life(1, "/")}, scope="session")
    assert (await send(b"".join(lines))).json()["kind"] == "OtherFile"
    assert (await send(good[: len(good) // 2])).json()["_tag"] == "InvalidExportError"
    code, _lines, error = await fairlead(up, "restore", session, "--from", str(other))
    assert (code, "no such file" in error) == (1, True)
    assert await end_of(up, session) == 0

    moved.file.path.write_bytes(good)
    assert (await fairlead_local("verify", str(tmp_path)))[0] == 0
    await restore_tree(cold, session, tmp_path)
    await check_whole(up, session, before)


async def test_a_tree_leaves_and_comes_back_with_its_outputs(
    up: Stack, cold: SessionRequests, tmp_path: Path
) -> None:
    """Each sub-agent has its own file, and the outputs are in the files."""
    session = await up.session()
    task = json.dumps({"agent": "general", "description": "some work", "prompt": "count"})
    await up.client.prompt(session, f"[[sim: tool=task args='{task}' ; answer=done]] go")
    await up.until(session, "step.ended", count=2)
    await up.wait_until_rested(session)
    await up.client.prompt(session, f"[[sim: tool=bash args='{COUNT}' ; answer=done]] go")
    await up.until(session, "step.ended", count=4)
    log = await up.wait_until_rested(session)
    (below,) = [event.event.session_id for event in log if isinstance(event.event, ChildFinished)]
    with pytest.raises(CommandError, match="goes with it"):
        await store_tree(cold, below, tmp_path)

    waiting = {"sessionID": below, "prompt": {"text": "Later"}, "resume": False}
    receipt = (await up.ask("session.prompt", waiting))["data"]
    assert await cold.find(below)  # The read models have the prompt now.
    with pytest.raises(Conflict, match=below):
        await store_tree(cold, session, tmp_path)
    assert names(tmp_path) == []
    cancelled = {"sessionID": below, "messageID": receipt["id"]}
    assert "error" not in await up.ask("session.cancel", cancelled)
    assert await cold.find(below)
    events = {id_: await end_of(up, id_) for id_ in (session, below)}

    moved = await store_tree(cold, session, tmp_path)
    files = {one.session_id: verify_file(one.file.path).sessions[one.session_id] for one in moved}
    (output,) = files[session].outputs
    assert set(files) == {session, below}
    assert (await up.http.get(f"/api/tool-output/{output}")).status_code == 404
    assert len(await restore_tree(cold, session, tmp_path)) == 2

    assert {id_: await end_of(up, id_) for id_ in events} == events
    assert "\n29999\n30000\n" in (await up.http.get(f"/api/tool-output/{output}")).text


async def test_a_rebuild_reads_the_files_and_names_those_that_it_lacks(
    up: Stack, cold: SessionRequests, tmp_path: Path
) -> None:
    session, _before = await spoken_session(up)
    messages = await up.messages(session)
    (moved,) = await store_tree(cold, session, tmp_path)

    async def rebuild(*argv: str) -> tuple[str, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fairlead_cli", "rebuild", *argv, "--json"),
            *("--state", str(up.up.state.root)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = await process.communicate()
        assert process.returncode == 0, error
        return out.decode(), error.decode().replace("\n", " ")

    whole, error = await rebuild("--cold", str(tmp_path))
    assert moved.file.path.name not in error
    assert await up.messages(session) == messages
    less, error = await rebuild()
    assert moved.file.path.name in error
    listed = await cold.find(session)
    assert listed is not None
    assert listed.stored is not None
    assert listed.stored.lacks_messages
    refused = await up.http.get(f"/api/session/{session}/message")
    assert refused.json()["_tag"] == "SessionStoredError"
    again, _error = await rebuild("--cold", str(tmp_path))
    assert whole == again != less
    assert await up.messages(session) == messages


async def test_a_session_at_work_stays_and_old_ones_go_in_one_run(
    up: Stack, cold: SessionRequests, tmp_path: Path
) -> None:
    """`--older-than` leaves what has something open, and the log of all of it breaks no rule."""
    busy = await up.session()
    waiting = {"sessionID": busy, "prompt": {"text": "Later"}, "resume": False}
    assert "error" not in await up.ask("session.prompt", waiting)
    with pytest.raises(Conflict, match="pending input"):
        await store_tree(cold, busy, tmp_path)
    assert names(tmp_path) == []
    await spoken_session(up)

    code, chosen, _error = await fairlead(
        up, "store", "--older-than", "0d", "--to", str(tmp_path), "--dry-run"
    )
    assert (code, len(chosen) > 1) == (0, True)
    code, lines, error = await fairlead(up, "store", "--older-than", "0d", "--to", str(tmp_path))
    assert code == 0, error
    assert [line["session"] for line in lines if line["state"] == "left"] == [busy]
    stored = {line["session"] for line in lines if line.get("state") == "stored"}
    assert len(names(tmp_path, ".fairlead.jsonl")) == len(stored) > 0
    listed = (await fairlead_local("list", str(tmp_path)))[1]
    assert {line["session_id"] for line in listed} == stored
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "verify", "--json"),
        *("--state", str(up.up.state.root)),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert json.loads(out.splitlines()[-1])["violations"] == 0, out


async def fairlead_local(*argv: str) -> tuple[int, list[dict[str, Any]]]:
    """Run `fairlead cold` without a server."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "cold", *argv, "--json"),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, [json.loads(line) for line in out.splitlines()]
