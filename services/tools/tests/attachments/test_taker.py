"""Attachments are taken once: what the model is shown of files, folders, pages and resources."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_schema.attachments.reference import (
    attachment_id,
    attachment_uri,
    id_of_content,
    object_name,
)
from fairlead_schema.attachments.request import TakeAttachments
from fairlead_schema.events import SessionCreated
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import AttachedContent, PromptFile
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.config.configuration import Config
from fairlead_testing.images import PDF, PNG, png
from fairlead_testing.web_server import reply, site
from fairlead_tools.attachments.content import NotTaken, RawContent
from fairlead_tools.attachments.taker import AttachmentTaker

AT = Address("default", "ses_1")


async def read_resource(_tenant: str, uri: str) -> RawContent:
    if uri != "mcp://docs/note:a":
        raise NotTaken("There is no tool server.")
    return RawContent(b"tides", "a", "text/plain")


@pytest.fixture
async def eventlog() -> EventLog:
    eventlog = memory_eventlog()
    created = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
    draft = Draft(ids.event_id(), 1, created)
    await eventlog.log.append(AT, ids.commit_id(), (draft,), after=await eventlog.log.head(AT))
    return eventlog


@pytest.fixture
def location(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def config(location: Path, **sections: dict[str, Any]) -> Config:
    rules = [
        {"action": "*", "resource": "*", "effect": "allow"},
        {"action": "read", "resource": "secret*", "effect": "deny"},
        {"action": "read", "resource": "asked*", "effect": "ask"},
        {"action": "external_directory", "resource": "*", "effect": "ask"},
    ]
    values: dict[str, Any] = {
        "agent": {"build": {"permissions": rules}},
        "location": {"roots": [str(location.parent)]},
    }
    return Config.model_validate(values | sections)


async def take(
    eventlog: EventLog, location: Path, *uris: str, **sections: dict[str, Any]
) -> list[AttachedContent]:
    taker = AttachmentTaker(config(location, **sections), eventlog, read_resource)
    command = TakeAttachments(
        tenant="default",
        session_id="ses_1",
        location=LocationRef(directory=str(location)),
        project_id="p",
        agent="build",
        files=tuple(PromptFile(uri=uri, mime="text/plain") for uri in uris),
    )
    return list((await taker.take(command)).contents)


async def test_files_and_folders_are_read_under_the_location(
    eventlog: EventLog, location: Path
) -> None:
    """P-23: by a URI or a plain path; with the lines that the URI names."""
    (location / "a b.py").write_text("one\ntwo\nthree\n")
    (location / "sub").mkdir()
    (location / "sub" / "x").touch()
    uri = (location / "a b.py").as_uri()

    whole, plain, lines, folder = await take(
        eventlog, location, uri, "a b.py", f"{uri}?start=2&end=3", "sub/"
    )

    assert whole.text == plain.text == "one\ntwo\nthree\n"
    assert (whole.mime, whole.bytes) == ("text/x-python", 14)
    assert (lines.text, lines.note) == ("two\nthree\n", "Lines 2 to 3 of 3")
    assert folder.text == "x"


async def test_media_is_fitted_and_stored_by_its_hash(eventlog: EventLog, location: Path) -> None:
    """P-23: small media inline, large media by reference, whatever its name says."""
    (location / "small.txt").write_bytes(PNG)
    large = PDF + b"%" * 2000
    (location / "large.pdf").write_bytes(large)

    small, stored = await take(
        eventlog, location, "small.txt", "large.pdf", ingest={"attachment_inline_bytes": 1000}
    )
    again = await take(eventlog, location, "large.pdf", ingest={"attachment_inline_bytes": 1000})

    assert small.mime == "image/png"
    assert small.uri is not None
    assert small.uri.startswith("data:image/png;base64,")
    assert stored == again[0]
    assert stored == AttachedContent(
        mime="application/pdf", bytes=len(large), uri=attachment_uri(id_of_content(large))
    )
    assert await eventlog.attachments.stat(
        "default", object_name("ses_1", id_of_content(large))
    ) == (len(large), "application/pdf")


def plant_link(location: Path) -> str:
    (location.parent / "outside").write_text("private")
    (location / "link").symlink_to(location.parent / "outside")
    return "link"


def plant_pipe(location: Path) -> str:
    os.mkfifo(location / "pipe")
    return "pipe"


def plant_huge(location: Path) -> str:
    with (location / "huge").open("wb") as file:
        file.truncate(30 << 20)
    return "huge"


def plant_bomb(location: Path) -> str:
    (location / "bomb.png").write_bytes(png(60_000, 60_000))
    return "bomb.png"


def plant_binary(location: Path) -> str:
    (location / "a.bin").write_bytes(b"\xff\0\xfe")
    return "a.bin"


def plant_secret(location: Path) -> str:
    (location / "secret.txt").write_text("hidden")
    return "secret.txt"


def plant_asked(location: Path) -> str:
    (location / "asked.txt").write_text("hidden")
    return "asked.txt"


@pytest.mark.parametrize(
    ("plant", "note"),
    [
        (plant_link, "a link leads out of the location"),
        (plant_pipe, "neither a file nor a directory"),
        (plant_huge, "at most 20971520 are taken"),
        (plant_bomb, "60000x60000 pixels"),
        (plant_binary, "cannot be shown to a model"),
        (plant_secret, "Permission denied: read"),
        (plant_asked, "It needs permission (read)"),
        (lambda _: "gone.txt", "No such file or directory"),
        (lambda _: "../outside", "leaves the location"),
        (lambda _: "file:///dev/zero", "It needs permission (external_directory)"),
        (lambda _: "file:///etc/hostname", "It needs permission (external_directory)"),
        (lambda _: "http://127.0.0.1:9/", "private address"),
        (lambda _: "http://[broken", "Not a URL"),
        (lambda _: "ftp://host/file", "Attachments of the form ftp: are not read."),
        (lambda _: "javascript:alert(1)", "Attachments of the form javascript: are not read."),
        (lambda _: "mcp://other/x", "There is no tool server"),
        (lambda _: "nul\0", "not a path"),
    ],
)
async def test_what_cannot_be_taken_is_a_note_with_the_reason(
    eventlog: EventLog, location: Path, plant: Callable[[Path], str], note: str
) -> None:
    """P-23: no hostile file fails a prompt, blocks a worker, or leads out of the location."""
    (location / "good.txt").write_text("good")

    bad, good = await take(eventlog, location, plant(location), "good.txt")

    assert bad.note is not None
    assert note in bad.note
    assert (bad.text, bad.uri) == (None, None)
    assert good.text == "good"


async def test_a_resource_of_a_tool_server_is_read(eventlog: EventLog, location: Path) -> None:
    """P-23: `mcp://<server>/<its URI>`."""
    (content,) = await take(eventlog, location, "mcp://docs/note:a")

    assert content.text == "tides"


async def test_many_long_texts_do_not_fill_the_commit(eventlog: EventLog, location: Path) -> None:
    """P-23: a commit holds some texts, and references to the others."""
    for number in range(8):
        (location / f"{number}.txt").write_text(f"{number}" * 60_000)

    contents = await take(eventlog, location, *(f"{number}.txt" for number in range(8)))

    assert sum(len(content.text or "") for content in contents) <= 256 * 1024
    stored = [content for content in contents if content.text is None]
    assert all(content.uri and attachment_id(content.uri) for content in stored)
    assert len(stored) == 3
    assert contents[0].note == "Only the first 51200 of 60000 bytes are shown"


async def test_at_the_quota_nothing_is_stored(eventlog: EventLog, location: Path) -> None:
    """P-23: the model hears why, and the prompt goes on."""
    (location / "a.pdf").write_bytes(PDF + b"%" * 2000)
    (location / "b.pdf").write_bytes(PDF + b"#" * 2000)
    limits = {"ingest": {"attachment_inline_bytes": 10}, "quota": {"output_bytes": 100}}

    await take(eventlog, location, "a.pdf", **limits)
    (content,) = await take(eventlog, location, "b.pdf", **limits)

    assert content.uri is None
    assert content.note is not None
    assert "It is not stored" in content.note


async def test_pages_and_files_of_the_web_are_read_through_the_guard(
    eventlog: EventLog, location: Path
) -> None:
    """P-23: a page as markdown, media as media; a refusal and a redirect elsewhere are notes."""
    async with site() as web:
        web.pages["/page"] = reply(b"<h1>Tides</h1><p>high</p>")
        web.pages["/a.png"] = reply(PNG, mime="image/png")
        web.pages["/lie.png"] = reply(b"hello", mime="image/png")
        web.pages["/away"] = reply(b"", "location: http://169.254.169.254/", status="302 Found")
        paths = ("/page", "/a.png", "/lie.png", "/gone", "/away")

        page, image, lie, gone, away = await take(
            eventlog, location, *map(web.url, paths), tools={"web_private": True}
        )

    assert page.mime == "text/markdown"
    assert page.text is not None
    assert "# Tides" in page.text
    assert (image.mime, image.bytes) == ("image/png", len(PNG))
    assert (lie.mime, lie.text) == ("text/plain", "hello")
    assert "status 404" in str(gone.note)
    assert "redirects to another scheme, host or port" in str(away.note)
