"""Uploads over HTTP: checked before anything is stored, and read back by their session."""

from collections.abc import AsyncIterator
from hashlib import sha256

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_gateway.routes.messages import attachments
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.attachments.reference import attachment_uri, id_of_content, object_name
from fairlead_schema.subjects import Address
from fairlead_testing.images import PNG
from services.gateway.tests.conftest import Append, FakeIngest

UPLOAD = "/api/session/ses_1/upload"
BYTES = {"content-type": "application/octet-stream"}


@pytest.fixture
def settings() -> GatewaySettings:
    return GatewaySettings(directory="/srv/default", attachment_bytes_max=100_000)


@pytest.fixture(autouse=True)
async def _session(append: Append, ingest: FakeIngest) -> None:
    await append("ses_1")
    ingest.serve("session.upload", {"data": {"id": id_of_content(PNG), "complete": False}})


async def test_an_upload_is_sent_in_parts_and_answered_with_its_reference(
    client: httpx.AsyncClient, ingest: FakeIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-23: only the last part carries what makes the file readable."""
    monkeypatch.setattr(attachments, "PART_BYTES", 50)

    answer = await client.post(f"{UPLOAD}?name=a.png", content=PNG, headers=BYTES)

    uri = attachment_uri(id_of_content(PNG))
    file = {"uri": uri, "mime": "image/png", "bytes": len(PNG), "name": "a.png"}
    assert (answer.status_code, answer.json()) == (200, {"data": file})
    first, last = ingest.commands
    assert (first["part"], first["total"], "digest" in first) == (0, len(PNG), False)
    assert (last["part"], last["digest"]) == (1, sha256(PNG).hexdigest())


@pytest.mark.parametrize(
    ("query", "content", "mime"),
    [
        ("type=image/png", PNG, "image/png"),
        ("", PNG, "image/png"),
        ("name=a.py", b"x = 1", "text/x-python"),
        ("", b"plain", "text/plain"),
        ("name=a.zip", b"PK\x03\x04\0", "application/zip"),
        ("", b"\xff\0", "application/octet-stream"),
        ("", b"", "text/plain"),
    ],
)
async def test_the_type_is_claimed_or_found(
    client: httpx.AsyncClient, query: str, content: bytes, mime: str
) -> None:
    """A-24, P-23: by the bytes, then by the name, then as text."""
    answer = await client.post(f"{UPLOAD}?{query}", content=content, headers=BYTES)

    assert (answer.status_code, answer.json()["data"]["mime"]) == (200, mime)


@pytest.mark.parametrize(
    ("query", "content", "status"),
    [
        ("type=image/png", b"hi", 400),
        ("type=image/gif", PNG, 400),
        ("type=nonsense", PNG, 400),
        ("type=text/plain", b"\xff", 400),
        ("", b"x" * 100_001, 413),
    ],
)
async def test_a_lie_about_type_or_size_stores_nothing(
    client: httpx.AsyncClient, ingest: FakeIngest, query: str, content: bytes, status: int
) -> None:
    """D12, P-23: a typed error, and not one command."""
    answer = await client.post(f"{UPLOAD}?{query}", content=content, headers=BYTES)

    assert answer.status_code == status, answer.text
    assert ingest.commands == []


async def test_a_body_without_a_length_is_bounded_too(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x" * 1000

    answer = await client.post(UPLOAD, content=endless(), headers=BYTES)

    assert (answer.status_code, answer.json()["_tag"]) == (413, "TooLargeError")
    assert ingest.commands == []


async def test_an_upload_needs_a_session_and_its_own_content_type(
    client: httpx.AsyncClient,
) -> None:
    missing = await client.post("/api/session/ses_2/upload", content=PNG, headers=BYTES)
    form = await client.post(UPLOAD, content=PNG, headers={"content-type": "text/plain"})

    assert (missing.status_code, form.status_code) == (404, 415)


async def test_stored_content_is_read_by_its_session_alone(
    client: httpx.AsyncClient, eventlog: EventLog, append: Append
) -> None:
    """P-23: a browser does not run it, and another session does not reach it."""
    await append("ses_2")

    async def pieces() -> AsyncIterator[bytes]:
        yield PNG

    id_ = id_of_content(PNG)
    at = Address("default", "ses_1")
    await eventlog.attachments.put(at, object_name("ses_1", id_), pieces(), mime="image/png")

    answer = await client.get(f"/api/session/ses_1/attachment/{id_}")

    assert (answer.status_code, answer.content) == (200, PNG)
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-security-policy"] == "sandbox"
    other = await client.get(f"/api/session/ses_2/attachment/{id_}")
    assert (other.status_code, other.json()["_tag"]) == (404, "AttachmentNotFoundError")
    assert (await client.get("/api/session/ses_1/attachment/fil_1")).status_code == 400
