"""Exports that leave through the gateway, and files that come in: verified first, sent to ingest then."""

from collections.abc import AsyncIterator

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.lines import OutputBegun
from fairlead_session.transfer.reader import trusted_items
from fairlead_session.transfer.verification import verify_export
from fairlead_testing.exports import (
    CHILD,
    OUTPUT,
    OUTPUT_TEXT,
    PARENT,
    child_life,
    export_lines,
    growing_life,
    parent_life,
    payloads,
    tree_export,
)
from services.gateway.tests.conftest import FakeIngest, Project

OCTETS = {"content-type": "application/octet-stream"}


@pytest.fixture
async def tree(eventlog: EventLog) -> None:
    """A parent with a sub-agent and an output."""
    assert isinstance(eventlog.log, MemoryLog)
    for session_id, life in ((PARENT, parent_life()), (CHILD, child_life())):
        at = Address("default", session_id)
        for payload in payloads(life, at):
            await eventlog.log.append_raw(at, payload)

    async def pieces() -> AsyncIterator[bytes]:
        yield OUTPUT_TEXT

    await eventlog.outputs.put(Address("default", PARENT), OUTPUT, pieces(), mime="text/plain")


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(("query", "sessions"), [("", [PARENT]), ("?tree=true", [PARENT, CHILD])])
async def test_an_export_can_be_verified(
    client: httpx.AsyncClient, query: str, sessions: list[str]
) -> None:
    answer = await client.get(f"/api/session/{PARENT}/export{query}")

    lines = answer.content.splitlines(keepends=True)
    summary = verify_export(lines)
    assert list(summary.sessions) == sessions
    assert summary.header.by == "local"
    assert summary.sessions[PARENT].outputs == {OUTPUT: len(OUTPUT_TEXT)}
    assert answer.headers["content-disposition"].startswith("attachment")


@pytest.mark.usefixtures("tree")
async def test_an_expired_output_is_left_out(client: httpx.AsyncClient, eventlog: EventLog) -> None:
    await eventlog.outputs.remove_all(Address("default", PARENT))

    lines = (await client.get(f"/api/session/{PARENT}/export")).content.splitlines(keepends=True)

    assert verify_export(lines).sessions[PARENT].outputs == {OUTPUT: 0}
    assert not [item for item in trusted_items(lines) if isinstance(item, OutputBegun)]


@pytest.mark.usefixtures("tree")
async def test_a_tenant_is_exported_with_all_its_sessions(
    client: httpx.AsyncClient, project: Project
) -> None:
    project(PARENT, created=1)
    project(CHILD, created=2)
    project("ses_gone", created=3)

    answer = await client.get("/api/tenant/export")

    assert list(verify_export(answer.content.splitlines(keepends=True)).sessions) == [PARENT, CHILD]


@pytest.mark.usefixtures("tree")
async def test_an_export_keeps_bytes_that_nobody_can_read(
    client: httpx.AsyncClient, eventlog: EventLog
) -> None:
    assert isinstance(eventlog.log, MemoryLog)
    await eventlog.log.append_raw(Address("default", PARENT), b"\xff rubbish")

    answer = await client.get(f"/api/session/{PARENT}/export")

    assert b'"raw":"/yBydWJiaXNo"' in answer.content
    assert answer.content.splitlines()[-1].startswith(b'{"end":')


async def test_the_export_of_an_unknown_session_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/session/ses_none/export")).status_code == 404


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "NotAnExport"),
        (b"".join(tree_export()[:-1]), "Truncated"),
        (b"".join(tree_export()).replace(b"Look around", b"Look abound"), "Checksum"),
        (b"[" * 100_000, "Truncated"),
        (b"x" * 100_000 + b"\n", "NotAnExport"),
    ],
)
async def test_a_damaged_file_changes_nothing(
    client: httpx.AsyncClient, ingest: FakeIngest, body: bytes, kind: str
) -> None:
    """Ingest is not even asked."""
    answer = await client.post("/api/session/import", content=body, headers=OCTETS)

    assert answer.status_code == 400
    assert (answer.json()["_tag"], answer.json()["kind"]) == ("InvalidExportError", kind)
    assert ingest.commands == []


async def test_an_import_is_checked_then_stored_then_replayed(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    checked = [{"sessionID": PARENT, "seq": 0}, {"sessionID": CHILD, "seq": 0}]
    ingest.serve("transfer.check", {"data": {"sessions": checked}})
    ingest.serve("transfer.output", {"data": {"id": OUTPUT, "complete": True}})
    replayed = {"sessionID": PARENT, "seq": 23, "accepted": 23}
    ingest.serve("transfer.replay", {"data": replayed})

    answer = await client.post(
        "/api/session/import?publish=true&origin=east",
        content=b"".join(tree_export()),
        headers=OCTETS,
    )

    assert answer.json()["data"]["accepted"] == 46, answer.text
    sessions, adds, output, parent, child = ingest.commands
    assert sessions["sessions"][0]["messageIDs"] == ["msg_mine"]
    assert adds["adds"]["sessions"] == 2
    assert (output["id"], output["bytes"]) == (OUTPUT, len(OUTPUT_TEXT))
    assert (parent["through"], parent["publish"], parent["origin"]) == (23, True, "east")
    assert len(parent["commits"]) == len(parent_life())
    assert child["sessionID"] == CHILD


async def test_a_check_writes_nothing_and_a_skipped_session_is_left_out(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    skipped = {"sessionID": PARENT, "seq": 0, "skipped": True}
    checked = [skipped, {"sessionID": CHILD, "seq": 0}]
    ingest.serve("transfer.check", {"data": {"sessions": checked}})
    ingest.serve("transfer.replay", {"data": {"sessionID": CHILD, "seq": 2, "accepted": 2}})
    body = b"".join(tree_export())

    only = await client.post("/api/session/import?check=true", content=body, headers=OCTETS)
    assert only.json()["data"]["checkedOnly"]
    assert len(ingest.commands) == 2
    await client.post("/api/session/import", content=body, headers=OCTETS)
    assert [item.get("sessionID") for item in ingest.commands[2:]] == [None, None, CHILD]


async def test_one_id_is_for_one_tree(client: httpx.AsyncClient, ingest: FakeIngest) -> None:
    lives = {"ses_a": growing_life(1), "ses_b": growing_life(1)}
    answer = await client.post(
        "/api/session/import?id=ses_c", content=b"".join(export_lines(lives)), headers=OCTETS
    )

    assert (answer.status_code, answer.json()["field"]) == (400, "id")
    assert ingest.commands == []


async def test_a_file_that_is_too_large_or_of_another_type_is_refused(
    client: httpx.AsyncClient, settings: GatewaySettings
) -> None:
    object.__setattr__(settings, "import_bytes_max", 100)
    large = await client.post("/api/session/import", content=b"x" * 101, headers=OCTETS)
    form = await client.post("/api/session/import", data={"a": "b"})

    assert (large.status_code, form.status_code) == (413, 415)
