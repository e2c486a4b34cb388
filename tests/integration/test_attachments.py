"""Attachments through a whole stack: taken once, stored by hash, and never half of one."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from fairlead_eventlog.jetstream.streams.outputs import CHUNK_BYTES
from fairlead_schema.attachments.reference import attachment_id, id_of_content, object_name
from fairlead_schema.events import PromptPromoted
from fairlead_schema.prompt import PromptFile
from fairlead_schema.subjects import Address
from fairlead_testing.images import PDF, png
from fairlead_testing.stack import TIMEOUT_S, Stack, check_log, stack
from fairlead_testing.web_server import reply, site

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

BYTES = {"content-type": "application/octet-stream"}
LARGE = PDF + b"%" * 900_000
CONFIG = """
[tools]
web_private = true
[ingest]
upload_life_s = 2.0
[projector]
sweep_age_s = 0.3
sweep_interval_s = 0.3
[agent.build]
permissions = [{action = "*", resource = "*", effect = "allow"}]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    place: Path = tmp_path_factory.mktemp("stack")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG)
    async with stack(place / "state", scale={"runner": 2}, config=config, sim=True) as running:
        yield running


async def prompt(up: Stack, session: str, message: str, *uris: str) -> None:
    files = [{"uri": uri} for uri in uris]
    body = {"sessionID": session, "id": message, "prompt": {"text": "look", "files": files}}
    answer = await up.ask("session.prompt", body)
    assert "data" in answer, answer


async def promoted_files(up: Stack, session: str) -> list[PromptFile]:
    log = await up.until(session, "step.ended")
    check_log(log)
    prompts = [item.event for item in log if isinstance(item.event, PromptPromoted)]
    assert len(prompts) == 1
    return list(prompts[0].prompt.files or ())


async def upload(up: Stack, session: str, content: bytes) -> dict[str, Any]:
    path = f"/api/session/{session}/upload"
    answer = await up.http.post(path, content=content, headers=BYTES)
    assert answer.status_code == 200, answer.text
    file: dict[str, Any] = answer.json()["data"]
    return file


async def test_files_uploads_and_copies_keep_their_content(up: Stack, tmp_path: Path) -> None:
    """P-23: taken once; exported and imported with the session; gone with its purge."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    (tmp_path / "notes.md").write_text("# Tides")
    session = await up.session(location={"directory": str(tmp_path)})
    file = await upload(up, session, LARGE)
    again = await upload(up, session, LARGE)
    assert file == again

    await prompt(up, session, "msg_files1", "notes.md", file["uri"], "gone.txt")
    notes, stored, gone = await promoted_files(up, session)

    assert notes.content is not None
    assert notes.content.text == "# Tides"
    assert (stored.uri, stored.mime) == (file["uri"], "application/pdf")
    assert gone.content is not None
    assert "No such file" in str(gone.content.note)
    path = f"/api/session/{session}/attachment/{attachment_id(file['uri'])}"
    assert (await up.http.get(path)).content == LARGE

    exported = (await up.http.get(f"/api/session/{session}/export")).content
    copy = "ses_attachmentcopy1"
    imported = await up.http.post(
        "/api/session/import", params={"id": copy}, content=exported, headers=BYTES, timeout=60
    )
    assert imported.status_code == 200, imported.text
    assert (await up.http.get(path.replace(session, copy))).content == LARGE

    assert (await up.http.delete(f"/api/session/{session}?purge=true")).status_code == 204
    name = object_name(session, id_of_content(LARGE))
    async with asyncio.timeout(60):
        while await up.eventlog.attachments.stat("default", name) is not None:
            await asyncio.sleep(0.1)
    assert (await up.http.get(path.replace(session, copy))).content == LARGE


@pytest.mark.parametrize("victim", [pytest.param("tools", marks=pytest.mark.slow), "runner"])
async def test_a_death_between_taking_and_committing_repeats_to_one_result(
    up: Stack, victim: str
) -> None:
    """P-23: the page is asked for again, and is in the log exactly once."""
    picture, held = png(3, 2, b"x" * 100_000), asyncio.Event()

    async def hold(writer: asyncio.StreamWriter) -> None:
        held.set()
        await asyncio.sleep(60)
        writer.close()

    async with site() as web:
        web.pages["/a.png"] = hold
        session = await up.session()
        await prompt(up, session, f"msg_death{victim}", web.url("/a.png"))
        async with asyncio.timeout(60):
            await held.wait()
        web.pages["/a.png"] = reply(picture, mime="image/png")
        for index in range(2 if victim == "runner" else 1):
            up.up.kill(victim, index, signal.SIGKILL)

        (file,) = await promoted_files(up, session)

        assert len(web.asked) >= 2
    assert file.content is not None
    assert file.content.uri is not None
    assert attachment_id(file.content.uri) == id_of_content(picture)
    await up.up.wait_ready()


async def test_an_upload_killed_in_the_middle_leaves_nothing(up: Stack) -> None:
    """P-23: no prompt can name it, and the next upload of the same file succeeds."""
    session = await up.session()
    sent, killed = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield LARGE[:500_000]
        sent.set()
        await killed.wait()
        for _ in range(100):
            yield LARGE[500_000:]

    path = f"/api/session/{session}/upload"
    uploading = asyncio.create_task(up.http.post(path, content=body(), headers=BYTES))
    await sent.wait()
    up.up.kill("gateway", 0, signal.SIGKILL)
    killed.set()
    with pytest.raises(httpx.HTTPError):
        await uploading
    await up.up.wait_ready()

    at = Address("default", session)
    name = object_name(session, id_of_content(LARGE))
    assert await up.eventlog.attachments.stat(at.tenant, name) is None
    file = await upload(up, session, LARGE)
    await prompt(up, session, "msg_afterkill", file["uri"])
    (attached,) = await promoted_files(up, session)
    assert attached.content is not None
    assert attached.content.bytes == len(LARGE)


@pytest.mark.parametrize("victim", ["ingest", "gateway"])
async def test_a_process_killed_between_two_parts_leaves_no_half_and_no_rest(
    up: Stack, victim: str
) -> None:
    """P-23: the file is whole or absent, the next upload works, and dead parts are removed."""
    session, store = await up.session(), up.eventlog.attachments
    content = PDF + victim.encode() + b"%" * 12_000_000
    before = (await store.stored_bytes("default")).total
    name = object_name(session, id_of_content(content))

    uploading = asyncio.create_task(
        up.http.post(f"/api/session/{session}/upload", content=content, headers=BYTES)
    )
    async with asyncio.timeout(TIMEOUT_S):
        while (await store.stored_bytes("default")).total == before:
            await asyncio.sleep(0.005)
    was_whole = await store.stat("default", name) is not None
    up.up.kill(victim, 0, signal.SIGKILL)
    with suppress(httpx.HTTPError):
        await uploading
    await up.up.wait_ready()

    assert not was_whole, "the file was there before anybody died"
    file = await upload(up, session, content)
    assert file["bytes"] == len(content)
    read = b"".join([piece async for piece in store.get("default", name)])
    assert read == content
    async with asyncio.timeout(TIMEOUT_S):
        while (await store.stored_bytes("default")).total > before + len(content) + CHUNK_BYTES:
            await asyncio.sleep(0.1)
    assert b"".join([piece async for piece in store.get("default", name)]) == content
