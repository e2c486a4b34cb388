"""`/api/fs`, `/api/skill` and `/api/command`: the tools service answers, the gateway passes on."""

from base64 import b64encode
from typing import Any

import httpx
import pytest

from fairlead_gateway.routes.server import files
from fairlead_gateway.settings import GatewaySettings
from fairlead_service.config.configuration import Config
from services.gateway.tests.conftest import FakeIngest

SKILLS = [
    {"name": "deploy", "slash": True, "location": "/w/SKILL.md", "content": "Run it."},
    {"name": "other", "location": "", "content": "text"},
]


@pytest.fixture
def settings() -> GatewaySettings:
    config = {
        "location": {"default": "/srv/default"},
        "command": {"review": {"template": "Review $ARGUMENTS"}},
        "reference": {"guide": {"path": "/srv/guide", "description": "the guide"}},
    }
    return GatewaySettings.of(Config.model_validate(config))


def _part(
    content: bytes,
    *,
    mime: str = "text/plain",
    offset: int = 0,
    **more: Any,  # noqa: ANN401 - any field
) -> dict[str, Any]:
    part = {"path": "a.txt", "mime": mime, "size": len(content), "version": "v", "offset": offset}
    return {"data": {**part, "data": b64encode(content[offset:]).decode(), **more}}


async def test_a_directory_of_the_selected_location_is_listed(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    entries = [{"path": "src", "type": "directory"}, {"path": "a.txt", "type": "file"}]
    ingest.serve("file.list", {"data": {"entries": entries}})

    answer = await client.get("/api/fs/list", params={"location[directory]": "/w", "path": "sub"})

    assert (answer.status_code, answer.json()["data"]) == (200, entries)
    assert answer.json()["location"]["directory"] == "/w"
    assert ingest.commands == [{"location": {"directory": "/w"}, "path": "sub"}]


async def test_files_are_found_by_letters(client: httpx.AsyncClient, ingest: FakeIngest) -> None:
    ingest.serve("file.find", {"data": {"entries": [], "truncated": True}})

    answer = await client.get("/api/fs/find", params={"query": "ma", "type": "file", "limit": "5"})

    assert answer.json()["truncated"] is True
    assert ingest.commands[0] | {"location": None} == {
        "location": None,
        "query": "ma",
        "type": "file",
        "limit": 5,
    }


async def test_a_file_is_served_and_never_run_by_a_browser(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    ingest.serve("file.read", _part(b"<script>", mime="text/html"))

    answer = await client.get("/api/fs/read/deep/down/a%20b.txt")

    assert (answer.status_code, answer.content) == (200, b"<script>")
    assert ingest.commands[0]["path"] == "deep/down/a b.txt"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_a_large_file_comes_in_parts_and_a_changed_one_is_broken_off(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    content = b"0123456789"
    beginning = _part(content, data=b64encode(content[:6]).decode())
    ingest.serve_in_turn("file.read", beginning, _part(content, offset=6))

    answer = await client.get("/api/fs/read/a.txt")
    assert answer.content == content
    assert [command.get("offset", 0) for command in ingest.commands] == [0, 6]

    changed = _part(content, offset=6, version="w")
    ingest.serve_in_turn("file.read", beginning, changed)
    with pytest.raises(Exception, match="changed while it was read"):
        await client.get("/api/fs/read/a.txt")


async def test_refusals_of_the_tools_service_reach_the_client(
    client: httpx.AsyncClient, ingest: FakeIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {"_tag": "FileNotFoundError", "message": "File not found: x", "resource": "x"}
    ingest.serve("file.read", {"error": missing})
    answer = await client.get("/api/fs/read/x")
    assert (answer.status_code, answer.json()) == (404, missing)

    ingest.serve("file.read", _part(b"12345"))
    monkeypatch.setattr(files, "FILE_BYTES_MAX", 4)
    answer = await client.get("/api/fs/read/x")
    assert (answer.status_code, answer.json()["_tag"]) == (413, "TooLargeError")


@pytest.mark.parametrize("path", ["a%00b", "x" * 5000])
async def test_a_path_that_is_none_is_refused(
    client: httpx.AsyncClient, ingest: FakeIngest, path: str
) -> None:
    answer = await client.get(f"/api/fs/read/{path}")

    assert (answer.status_code, answer.json()["field"]) == (400, "path")
    assert ingest.commands == []


async def test_without_a_tools_service_files_are_unavailable(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/fs/list")

    assert (answer.status_code, answer.json()["_tag"]) == (503, "ServiceUnavailableError")


async def test_skills_commands_and_references_are_listed(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    ingest.serve("skill.list", {"data": {"skills": SKILLS}})

    skills = (await client.get("/api/skill")).json()
    commands = (await client.get("/api/command")).json()
    references = (await client.get("/api/reference")).json()

    assert skills["data"] == SKILLS
    assert commands["data"] == [
        {"name": "deploy", "template": "Run it."},
        {"name": "review", "template": "Review $ARGUMENTS"},
    ]
    assert references["data"] == [
        {
            "name": "guide",
            "path": "/srv/guide",
            "description": "the guide",
            "source": {"type": "local", "path": "/srv/guide"},
        }
    ]
    assert skills["location"]["directory"] == "/srv/default"
