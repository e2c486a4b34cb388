"""Sessions leave and come back through a whole stack: nothing is half taken, and nothing begins by itself."""

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
from fairlead_cli.exports.export_file import verify_file
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_schema.errors import SessionIsStored
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.record import Recorded, event_json
from fairlead_schema.subjects import Address
from fairlead_session.transfer.copy_ids import CopiedIds
from fairlead_session.transfer.events import stored_events
from fairlead_session.transfer.verification import verify_export
from fairlead_session.verify.verify import verify
from fairlead_testing.exports import (
    CHILD,
    OUTPUT,
    OUTPUT_TEXT,
    PARENT,
    Life,
    export_lines,
    growing_life,
    tree_export,
)
from fairlead_testing.stack import Stack, stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

TIMEOUT_S = 60.0
# The sweep of this stack has looked several times at a session that stands still.
SWEEP_S = 2.5
CONFIG = "[projector]\nsweep_age_s = 0.3\nsweep_interval_s = 0.3\nfeed_lag_s = 0\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A stack whose sweep is in a hurry."""
    place: Path = tmp_path_factory.mktemp("stack")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG)
    scale = {"runner": 2}
    async with stack(place / "state", scale=scale, config=config, sim=True) as running:
        yield running


async def send(up: Stack, lines: list[bytes], **query: str) -> httpx.Response:
    return await up.http.post(
        "/api/session/import",
        params=query,
        content=b"".join(lines),
        headers={"content-type": "application/octet-stream"},
        timeout=TIMEOUT_S,
    )


async def export(up: Stack, session: str, **query: str) -> list[bytes]:
    answer = await up.http.get(f"/api/session/{session}/export", params=query)
    assert answer.status_code == 200, answer.text
    return answer.content.splitlines(keepends=True)


async def stored(up: Stack, session: str) -> list[dict[str, Any]]:
    entries = up.eventlog.shards.session_entries(Address(DEFAULT_TENANT, session), after=0)
    return [event async for entry in entries for event in stored_events(entry.payload)]


async def end_of(up: Stack, session: str) -> int:
    return (await up.eventlog.log.end(Address(DEFAULT_TENANT, session))).seq


async def kill_during_import(up: Stack, service: str, lines: list[bytes], session: str) -> int:
    """Kill a service as soon as an import goes on. The answer is how far the session came."""
    before = await end_of(up, session)
    sending = asyncio.create_task(send(up, lines))
    async with asyncio.timeout(TIMEOUT_S):
        while await end_of(up, session) == before:
            assert not sending.done(), sending.result().text
            await asyncio.sleep(0)
    await up.restart(service, 0, signal.SIGKILL)
    with suppress(httpx.TransportError):
        await sending
    return await end_of(up, session)


def facts(log: list[Recorded]) -> list[dict[str, Any]]:
    return [event_json(recorded) for recorded in log]


async def test_an_imported_tree_rests_until_somebody_asks(up: Stack) -> None:
    """H-14, H-22: the turn that was owed at the origin waits, with inbox, messages and outputs."""
    answer = await send(up, tree_export("/"))

    report = answer.json()["data"]
    assert [item["accepted"] for item in report["sessions"]] == [23, 2]
    assert (await up.http.get(f"/api/tool-output/{OUTPUT}")).content == OUTPUT_TEXT
    pending = (await up.http.get(f"/api/session/{CHILD}/input")).json()["data"]
    assert [item["prompt"]["text"] for item in pending] == ["Do this"]
    messages = await up.messages(PARENT)
    assert [message["type"] for message in messages] == ["user", "assistant"]
    assert (await up.client.explain(PARENT))["code"] == "imported"
    listed = (await up.http.get("/api/session", params={"limit": 1000})).json()["data"]
    assert {PARENT, CHILD} <= {session["id"] for session in listed}
    assert (await up.http.get("/api/session/active")).json()["data"] == {}

    await asyncio.sleep(SWEEP_S)
    assert len(await up.events(PARENT)) == 23
    assert len(await up.events(CHILD)) == 2

    await up.client.resume(PARENT)
    log = await up.until(PARENT, "step.ended", count=2)
    assert verify(await up.wait_until_rested(PARENT)) == []
    assert facts(log)[:23] == facts(await up.events(PARENT))[:23]
    assert (await send(up, tree_export("/"))).json()["data"]["accepted"] == 0


async def test_a_real_session_is_copied_with_its_sub_agent_and_its_output(up: Stack) -> None:
    """H-04: the copy shares no id with the original, and outlives its purge."""
    session = await up.session()
    prompt = '[[sim: tool=bash args=\'{"command": "seq 1 30000"}\' ; answer=done]] go'
    await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": prompt}})
    await up.until(session, "tool.succeeded")
    await up.wait_until_rested(session)
    original = await export(up, session, tree="true")
    (output_id,) = verify_export(original).sessions[session].outputs

    answer = await send(up, original, id="ses_copied")
    assert answer.json()["data"]["count"] == 1, answer.text
    again = await send(up, original, id="ses_copied")
    assert again.json()["data"]["accepted"] == 0

    copied = CopiedIds(session, "ses_copied").output(output_id)
    deleted = await up.http.delete(f"/api/session/{session}", params={"purge": "true"})
    assert deleted.status_code == 204
    whole = (await up.http.get(f"/api/tool-output/{copied}")).text
    assert "\n29999\n30000\n" in whole
    await up.client.prompt("ses_copied", "And now?")
    await up.until("ses_copied", "step.ended", count=3)
    assert verify(await up.wait_until_rested("ses_copied")) == []
    refused = (await send(up, original)).json()
    assert (refused["_tag"], refused["kind"]) == ("ReplayConflictError", "Purged")


@pytest.mark.slow
async def test_an_import_that_was_killed_in_the_middle_never_runs_and_completes_when_repeated(
    up: Stack,
) -> None:
    """H-21: SIGKILL of the gateway, then of ingest; each time a prefix is left that nobody moves."""
    session = "ses_killed"
    lives: dict[str, Life] = {session: growing_life(1_500, "/")}
    lines = export_lines(lives, scope="session")
    through = verify_export(lines).sessions[session].seq

    seq = await kill_during_import(up, "gateway", lines, session)
    assert 0 < seq < through
    assert (await up.client.explain(session))["code"] == "import"
    refused = await up.http.post(f"/api/session/{session}/resume", json={})
    assert refused.status_code == 409
    await asyncio.sleep(SWEEP_S)
    assert await end_of(up, session) == seq
    await kill_during_import(up, "ingest", lines, session)
    completed = await send(up, lines)

    assert completed.status_code == 200, completed.text
    events = await stored(up, session)
    assert [event["seq"] for event in events] == list(range(1, through + 1))
    exported = verify_export(await export(up, session))
    assert exported.sessions[session].seq == through
    await up.client.prompt(session, "Go on")
    await up.until(session, "step.ended", count=1_501)
    assert verify(await up.wait_until_rested(session)) == []


async def test_what_stands_against_one_session_stops_the_whole_import(up: Stack) -> None:
    """H-17: nothing of the other sessions is written either."""
    await up.session(id="ses_here")
    lives: dict[str, Life] = {"ses_new": growing_life(1, "/"), "ses_here": growing_life(1, "/")}

    answer = await send(up, export_lines(lives))

    assert (answer.status_code, answer.json()["kind"]) == (409, "Divergent")
    assert await up.events("ses_new") == []
    checked = await send(up, export_lines({"ses_new": lives["ses_new"]}), check="true")
    assert checked.json()["data"] == {
        "sessions": [{"sessionID": "ses_new", "seq": 0, "accepted": 0, "skipped": False}],
        "count": 1,
        "accepted": 0,
        "checkedOnly": True,
    }
    assert await up.events("ses_new") == []


async def test_the_command_line_exports_verifies_and_imports(up: Stack, tmp_path: Path) -> None:
    session = await up.session()
    file = tmp_path / "one.jsonl"

    async def fairlead(*argv: str) -> tuple[int, str]:
        where = ("--http", up.up.http, *(("--token", up.up.token) if up.up.token else ()))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "fairlead_cli",
            *argv,
            *where,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = await process.communicate()
        return process.returncode or 0, (out + error).decode()

    assert (await fairlead("export", session, "-o", str(file)))[0] == 0
    assert verify_file(file).roots == [session]
    code, out = await fairlead("import", str(file), "--id", "ses_typed", "--json")
    assert (code, json.loads(out)["accepted"]) == (0, 1)
    file.write_bytes(file.read_bytes().replace(b"New session", b"Old session"))
    code, out = await fairlead("import", str(file))
    assert code == 1
    assert "Checksum" in out


async def test_a_session_leaves_the_log_as_a_file_and_comes_back_as_it_was(
    up: Stack, tmp_path: Path
) -> None:
    """ADR 0084: the same events and ids; meanwhile it is listed and read, and takes no prompt."""
    session = await up.session()
    await up.client.prompt(session, "Say hello")
    before = await up.wait_until_rested(session)
    connection = AsyncHttpConnection(up.up.http, up.up.token, patience_s=5.0)
    cold = SessionRequests(connection, wait_s=TIMEOUT_S)
    shown, messages = await cold.find(session), await up.messages(session)
    assert shown is not None

    (moved,) = await store_tree(cold, session, tmp_path)
    with pytest.raises(SessionIsStored, match=moved.file.path.name):
        await up.client.prompt(session, "Too late")
    (listed,) = [one for one in await up.client.sessions(limit=1000) if one.id == session]
    history = await up.http.get(f"/api/session/{session}/history")
    assert listed.stored is not None
    assert (listed.title, listed.cost) == (shown.title, shown.cost)
    assert history.json()["_tag"] == "SessionStoredError"
    assert await up.messages(session) == messages
    assert [event["seq"] for event in await stored(up, session)] == [0]

    await restore_tree(cold, session, tmp_path)
    back = await up.events(session)
    assert facts([one for one in back if one.seq]) == facts(before)
    assert await up.messages(session) == messages
    assert await cold.find(session) == shown
    await up.client.prompt(session, "And now?")
    await up.until(session, "step.ended", count=2)
    assert verify(await up.wait_until_rested(session)) == []
    await connection.aclose()
