"""The files of the console: small, cached for ever, and under a strict policy."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette

from fairlead_gateway.console.assets import POLICY, console_routes, load_assets, shrink_script
from fairlead_testing.console_javascript import STATIC

BYTES_MAX = 200_000


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(Starlette(routes=console_routes()))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/s/ses_1", "/asks", "/ops", "/login"])
async def test_every_view_is_the_same_page_under_a_strict_policy(
    client: httpx.AsyncClient, path: str
) -> None:
    answer = await client.get(path)
    again = await client.get(path, headers={"if-none-match": answer.headers["etag"]})

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert answer.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")


async def test_files_are_kept_for_ever_because_their_path_changes_with_them(
    client: httpx.AsyncClient,
) -> None:
    page = (await client.get("/")).text
    for path in re.findall(r'(?:src|href)="(/console/[^"]+)"', page):
        answer = await client.get(path)
        again = await client.get(path, headers={"if-none-match": answer.headers["etag"]})

        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert again.status_code == 304


async def test_the_file_of_another_release_is_not_kept(client: httpx.AsyncClient) -> None:
    answer = await client.get("/console/0000/main.js")

    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("name", ["nothing.js", "index.html", "%2e%2e/assets.py"])
async def test_nothing_else_is_served(client: httpx.AsyncClient, name: str) -> None:
    version = load_assets().version

    assert (await client.get(f"/console/{version}/{name}")).status_code == 404


def test_the_whole_console_is_small() -> None:
    assets = load_assets()
    sizes = {name: len(data) for name, data in assets.content.items()}
    sizes["index.html"] = len(assets.page)

    assert sum(sizes.values()) < BYTES_MAX, sizes


def test_comments_and_indentation_are_not_served_and_every_line_keeps_its_number() -> None:
    source = b"""// What it is.
import { a } from "./a.js"; // stays
/**
 * Words with a * and a / in them.
 * @param {string} b
 */
function f(b) {
  // A reason.
  return "// no comment" + b;
}
"""
    served = shrink_script(source)

    assert served.count(b"\n") == source.count(b"\n")
    assert served.split(b"\n")[8] == b'return "// no comment" + b;'
    assert b"reason" not in served
    assert b"@param" not in served
    assert b"// stays" in served


def test_no_script_hands_text_to_an_html_parser_or_loads_from_elsewhere() -> None:
    banned = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser"
    )
    remote = re.compile(r"""(?:from|import|src|href)\W{1,3}https?://""")
    found = {
        name: [*banned.findall(text), *remote.findall(text)]
        for name, data in load_assets().content.items()
        if (text := data.decode())
    }

    assert {name: hits for name, hits in found.items() if hits} == {}


def test_every_import_names_a_file_that_exists() -> None:
    content = load_assets().content
    missing = []
    for name, data in content.items():
        folder = name.rpartition("/")[0]
        for target in re.findall(
            r"""from "(\.[^"]+)"|import "(\.[^"]+)"|import\("(\.[^"]+)"\)""", data.decode()
        ):
            path = next(filter(None, target))
            parts = [*folder.split("/"), *path.split("/")] if folder else path.split("/")
            resolved: list[str] = []
            for part in parts:
                if part == "..":
                    resolved.pop()
                elif part not in {".", ""}:
                    resolved.append(part)
            if "/".join(resolved) not in content:
                missing.append(f"{name}: {path}")

    assert missing == []


def test_no_text_between_backticks_has_two_lines() -> None:
    """The second line would lose its indentation when it is served."""
    scripts = sorted(STATIC.rglob("*.js"))
    odd = [
        f"{path.name}: {line}"
        for path in scripts
        for line in path.read_text().splitlines()
        if line.count("`") % 2 and "`{3" not in line
    ]

    assert len(scripts) > 20
    assert odd == []
