"""No tool leaves the location, despite hostile paths and links that change at any moment."""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead_session.calls.lifecycle import Succeeded
from fairlead_tools.builtin import edit, grep, read, write
from fairlead_tools.files import safe_write
from fairlead_tools.files.path import PathRefused, open_place, resolve
from fairlead_tools.files.search.globs import matches_glob
from fairlead_tools.files.search.search import SearchEngine, find_engine
from fairlead_tools.registry.outcome import encode_output
from fairlead_tools.registry.tool import CallFailed, Tool
from services.tools.tests.file_calls import call_context, text

SWAP_S = 0.8
OUTSIDE = "nobody may see this"

parts = st.sampled_from(
    [
        "..",
        ".",
        "",
        "a",
        "b",
        "in",
        "out",
        "up",
        "loop",
        "file",
        "~",
        "\0",
        "\ud800",
        "é",
        "a" * 300,
    ]
)
hostile = st.builds(
    lambda lead, names, tail: lead + "/".join(names) + tail,
    st.sampled_from(["", "/", "//", "./", "../", "{here}/", "{there}/", "{here}/../"]),
    st.lists(parts, max_size=8),
    st.sampled_from(["", "/", "/.", "/.."]),
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("world")
    here, there = root / "here", root / "there"
    (here / "a/b").mkdir(parents=True)
    there.mkdir()
    (there / "file").write_text(OUTSIDE)
    (here / "a/file").write_text("mine")
    (here / "in").symlink_to("a/b")
    (here / "out").symlink_to(there)
    (here / "a/up").symlink_to("../..")
    (here / "loop").symlink_to("loop")
    return root


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(path=hostile)
def test_a_path_leads_inside_or_says_that_it_does_not(tree: Path, path: str) -> None:
    """L-01, L-04, L-05: this holds for any path, and links count by their real target."""
    here, there = tree / "here", tree / "there"
    absolute = path.format(here=here, there=there)
    try:
        place = resolve(str(here), absolute)
    except PathRefused:
        return
    inside = place.path.is_relative_to(here)
    assert (place.root is not None) is inside
    assert inside or absolute.startswith("/")
    assert place.path.is_relative_to(place.boundary)
    assert Path(os.path.realpath(place.boundary)) == place.boundary
    with suppress(OSError, PathRefused), open_place(place) as (descriptor, _):
        real = Path(f"/proc/self/fd/{descriptor}").readlink()
        assert real == place.path


def _swap(place: Path, backup: Path, outside: Path) -> None:
    for step in (
        lambda: place.rename(backup),
        lambda: place.symlink_to(outside),
        place.unlink,
        # Another call may have created a directory in the meantime.
        lambda: None if place.is_symlink() else shutil.rmtree(place, ignore_errors=True),
        lambda: backup.rename(place),
    ):
        with suppress(OSError):
            step()


@contextmanager
def swap_links(here: Path, there: Path) -> Iterator[None]:
    """Keep turning a directory and a file into links to the outside and back."""
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for name in ("dir", "file.txt"):
                _swap(here / name, here / f".{name}", there / name)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    here, there = tmp_path / "here", tmp_path / "there"
    for root, content in ((here, "needle mine"), (there, f"needle {OUTSIDE}")):
        (root / "dir/deep").mkdir(parents=True)
        (root / "dir/deep/file.txt").write_text(content)
        (root / "file.txt").write_text(content)
    return here, there


async def model_text(tool: Tool, here: Path, **fields: Any) -> str:  # noqa: ANN401
    """The text for the model of a call that may fail because a link just changed."""
    try:
        output = await tool.execute(tool.input.model_validate(fields), call_context(here))
    except CallFailed as error:
        return str(error)
    result = encode_output(tool, output)
    assert isinstance(result, Succeeded)
    return text(result)


READS: list[tuple[Tool, dict[str, Any]]] = [
    (read.tool(), {"path": "dir/deep/file.txt"}),
    (read.tool(), {"path": "file.txt"}),
    (grep.tool(find_engine()), {"pattern": "needle"}),
    (grep.tool(SearchEngine(None)), {"pattern": "needle", "path": "file.txt"}),
]


@pytest.mark.parametrize(("tool", "fields"), READS)
async def test_links_that_are_exchanged_show_nothing_from_outside(
    places: tuple[Path, Path], tool: Tool, fields: dict[str, Any]
) -> None:
    """L-05, L-65: this holds at any moment of a read or a search."""
    here, there = places
    outputs: set[str] = set()
    with swap_links(here, there):
        deadline = time.monotonic() + SWAP_S
        while time.monotonic() < deadline:
            outputs |= {await model_text(tool, here, **fields)}

    assert not [output for output in outputs if OUTSIDE in output]
    assert "mine" in await model_text(tool, here, **fields)


async def test_links_that_are_exchanged_let_nothing_be_written_outside(
    places: tuple[Path, Path],
) -> None:
    """L-05, L-08: no file outside is written, created, edited or removed."""
    here, there = places
    before = {path: path.read_bytes() for path in there.rglob("*") if path.is_file()}
    calls: list[tuple[Tool, dict[str, Any]]] = [
        (write.tool(), {"path": "dir/deep/file.txt", "content": "needle mine"}),
        (write.tool(), {"path": "dir/new/other.txt", "content": "x"}),
        (edit.tool(), {"path": "dir/deep/file.txt", "oldString": "needle", "newString": "pin"}),
    ]

    def remove() -> None:
        with suppress(PathRefused, OSError):
            safe_write.remove(resolve(str(here), "dir/deep/other.txt"))

    with swap_links(here, there):
        deadline = time.monotonic() + SWAP_S
        while time.monotonic() < deadline:
            for tool, fields in calls:
                await model_text(tool, here, **fields)
            await asyncio.to_thread(remove)

    after = {path: path.read_bytes() for path in there.rglob("*") if path.is_file()}
    assert after == before
    assert not (there / "dir/new").exists()


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 60 + "b", "a" * 250),
        ("**/a/" * 30 + "b", "a/" * 120 + "c"),
        ("**/*a*a*a*a*a*a*a*a*a*a*a*b/" * 5 + "x", "a" * 200 + "/" + "a" * 200),
        ("?*" * 100, "a" * 50),
        ("**/" * 200 + "b", "a/" * 300 + "c"),
    ],
)
def test_a_hostile_glob_is_no_work(glob: str, path: str) -> None:
    """L-60: the match fails early instead of trying every split."""
    start = time.monotonic()

    assert not matches_glob(glob, path)
    assert time.monotonic() - start < 10


names = st.text("ab*?", min_size=1, max_size=5)


@given(
    glob=st.lists(names | st.just("**"), min_size=1, max_size=4),
    path=st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=5),
)
def test_globs_match_as_trying_every_way_would(glob: list[str], path: list[str]) -> None:
    """L-60: matching each piece at its first place loses no match."""

    def matches_name(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(matches_name(pattern[1:], text[at:]) for at in range(len(text) + 1))
        return bool(text) and pattern[0] in {"?", text[0]} and matches_name(pattern[1:], text[1:])

    def matches_path(globs: list[str], texts: list[str]) -> bool:
        if not globs:
            return not texts
        if globs[0] == "**":
            least = 1 if len(globs) == 1 else 0
            return any(matches_path(globs[1:], texts[at:]) for at in range(least, len(texts) + 1))
        return (
            bool(texts) and matches_name(globs[0], texts[0]) and matches_path(globs[1:], texts[1:])
        )

    globs = [part if part == "**" or set(part) != {"*"} else "*" for part in glob]
    anchored = globs if len(globs) > 1 else ["**", *globs] if globs != ["**"] else globs
    assert matches_glob("/".join(globs), "/".join(path)) == matches_path(anchored, path)
