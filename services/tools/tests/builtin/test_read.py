"""`read`: whole files, pages, directories, and the files that it refuses."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead_eventlog.memory.outputs import MemoryOutputs
from fairlead_service.config.configuration import Config
from fairlead_session.calls.output_bounds import OutputLimits
from fairlead_session.people.permission import Need
from fairlead_tools.builtin import builtins, grep, read
from fairlead_tools.calls.output import OutputRetention
from fairlead_tools.files import pages
from fairlead_tools.files.pages import CUT, read_page
from fairlead_tools.registry.tool import CallContext, CallFailed
from services.tools.tests.conftest import AT
from services.tools.tests.file_calls import (
    call_context,
    failure_of,
    required_permissions,
    run_call,
    text,
)

READ = read.tool()


@pytest.mark.parametrize(
    "wrong", [{"offset": 0}, {"limit": 0}, {"limit": 2001}, {"offset": "x"}, {"more": 1}]
)
def test_input_out_of_bounds_is_refused(wrong: dict[str, object]) -> None:
    """L-12: an offset counts from 1, and a page has at most 2000 lines."""
    READ.input.model_validate({"path": "a", "offset": 1, "limit": 2000})
    with pytest.raises(ValidationError):
        READ.input.model_validate({"path": "a", **wrong})


async def test_reading_needs_read_on_the_file_and_is_approved_for_all(tmp_path: Path) -> None:
    """L-12: the resource is the file; an approval for always covers every file."""
    (tmp_path / "a.txt").write_text("x")

    assert await required_permissions(READ, tmp_path, path="a.txt") == (
        Need("read", ("a.txt",), ("*",)),
    )
    assert READ.permission == "read"
    assert READ.retry == "pure"


async def test_a_small_file_comes_whole(tmp_path: Path) -> None:
    """L-13, L-28: the path is canonical and relative to the location."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.py").write_text("one\r\ntwo\n")

    result = await run_call(READ, tmp_path, path="./sub//a.py")

    assert result.structured == {
        "path": "sub/a.py",
        "uri": (tmp_path / "sub/a.py").as_uri(),
        "name": "a.py",
        "content": "one\r\ntwo\n",
        "encoding": "utf8",
        "mime": "text/x-python",
    }
    assert text(result) == "one\r\ntwo\n"


async def test_an_empty_file_is_no_error(tmp_path: Path) -> None:
    """L-13, L-16: offset 1 is valid in an empty file."""
    (tmp_path / "a").write_text("")

    assert text(await run_call(READ, tmp_path, path="a")) == "(The file is empty)"
    page = await run_call(READ, tmp_path, path="a", offset=1)
    assert page.structured["content"] == ""
    assert page.structured["truncated"] is False


async def test_a_page_says_where_it_goes_on(tmp_path: Path) -> None:
    """L-13, L-14: an offset or a limit gives a page, without carriage returns."""
    (tmp_path / "a.txt").write_text("one\r\ntwo\r\nthree\r\n")

    first_page = await run_call(READ, tmp_path, path="a.txt", limit=2)
    last_page = await run_call(READ, tmp_path, path="a.txt", offset=3)

    assert first_page.structured == {
        "type": "text-page",
        "path": "a.txt",
        "content": "one\ntwo",
        "mime": "text/plain",
        "offset": 1,
        "truncated": True,
        "next": 3,
    }
    assert text(first_page).endswith("(There is more: continue with offset 3)")
    assert last_page.structured["content"] == "three"
    assert last_page.structured["truncated"] is False
    assert "next" not in last_page.structured


@pytest.mark.parametrize(("size", "in_pages"), [(51_200, False), (51_201, True)])
async def test_a_large_file_comes_in_pages(tmp_path: Path, size: int, in_pages: bool) -> None:  # noqa: FBT001
    """L-14: files above 51 200 bytes come in pages."""
    (tmp_path / "a.txt").write_text("x\n" * (size // 2) + "y" * (size % 2))

    result = await run_call(READ, tmp_path, path="a.txt")

    assert ("type" in result.structured) is in_pages
    if in_pages:
        assert result.structured["next"] == 2001
        assert len(result.structured["content"].split("\n")) == 2000


async def test_a_page_is_bounded_in_bytes(tmp_path: Path) -> None:
    """L-14: a page has whole lines, and the next page starts with the line that did not fit."""
    (tmp_path / "a.txt").write_text(f"{'x' * 999}\n" * 100)

    first = await run_call(READ, tmp_path, path="a.txt")

    assert first.structured["content"] == "\n".join(["x" * 999] * 51)
    assert first.structured["next"] == 52


@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=9)),
    limit=st.integers(1, 7),
)
def test_pages_together_are_the_file(lines: list[str], limit: int) -> None:
    """L-13, L-14: no line is missing, and none comes twice."""
    readable = [line.translate(dict.fromkeys(range(32), ".")) for line in lines]
    content = "".join(f"{line}\n" for line in readable).encode()
    pages: list[str] = []
    offset: int | None = 1
    while offset is not None and readable:
        page = read_page(BytesIO(content), offset, limit)
        pages += page.content.split("\n")
        offset = page.next

    assert pages == [
        line.removeprefix("\ufeff") if not at else line for at, line in enumerate(readable)
    ]


async def test_a_long_line_is_cut(tmp_path: Path) -> None:
    """L-15: a line is cut at 2000 characters with a note, and the next line follows."""
    (tmp_path / "a.txt").write_text(f"{'é' * 2000}\n{'€' * 2001}\n{'x' * 100_000}\nlast\r\n")

    result = await run_call(READ, tmp_path, path="a.txt")

    assert result.structured["content"].split("\n") == [
        "é" * 2000,
        "€" * 2000 + CUT,
        "x" * 2000 + CUT,
        "last",
    ]


async def test_an_offset_beyond_the_end_is_the_generic_error(tmp_path: Path) -> None:
    """L-16: this holds for files and for directories."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    assert await failure_of(READ, tmp_path, path="a.txt", offset=3) == "Unable to read a.txt"
    assert await failure_of(READ, tmp_path, path=".", offset=3) == "Unable to read ."


async def test_what_comes_after_a_page_is_not_examined(tmp_path: Path) -> None:
    """L-17: malformed text and zero bytes after the page do not matter."""
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\n\xff\xfe\0\0\0")

    result = await run_call(READ, tmp_path, path="a.txt", limit=2)

    assert result.structured["content"] == "one\ntwo"
    assert result.structured["next"] == 3


async def test_a_page_of_a_huge_file_is_cheap(tmp_path: Path) -> None:
    """L-17: the tool reads a file that does not fit in memory only to the end of the page."""
    with (tmp_path / "a.txt").open("wb") as file:
        file.write(b"first\n")
        file.truncate(1 << 40)

    result = await run_call(READ, tmp_path, path="a.txt", limit=1)

    assert result.structured["content"] == "first"


@pytest.mark.parametrize("more", [{}, {"limit": 1}, {"offset": 2}])
@pytest.mark.parametrize("start", [b"", b"x" * 100_000])
async def test_a_sparse_file_is_judged_by_its_first_bytes(
    tmp_path: Path, start: bytes, more: dict[str, int]
) -> None:
    """B10: a file of 1 TiB without a line break is not read to its end before it is judged."""
    with (tmp_path / "a.txt").open("wb") as file:
        file.write(start)
        file.truncate(1 << 40)

    async with asyncio.timeout(30):
        message = await failure_of(READ, tmp_path, path="a.txt", **more)

    if start and "offset" in more:
        assert message.startswith("The page is more than 256 MiB into the file")
    else:
        assert message == "Cannot read binary file: a.txt"


async def test_a_page_far_into_a_huge_file_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B10: a thread that reads cannot be stopped, so its work is bounded."""
    monkeypatch.setattr(pages, "SCAN_BYTES_MAX", 1 << 20)
    (tmp_path / "a.txt").write_text("line\n" * 500_000)
    (tmp_path / "b.txt").write_text("x" * (3 << 20))

    far = await failure_of(READ, tmp_path, path="a.txt", offset=400_000)
    wide = await failure_of(READ, tmp_path, path="b.txt")

    assert far == "The page is more than 1 MiB into the file; search with grep: a.txt"
    assert wide == "The page is more than 1 MiB into the file; search with grep: b.txt"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b"text\0text"),
        ("a.txt", b"text\n" + b"\x01\x02\x03" * 10),
        ("a.zip", b"plain"),
        ("a.WASM", b"plain"),
        ("a.txt", b"%PDF-1.7 plain"),
    ],
)
@pytest.mark.parametrize("more", [{}, {"limit": 5}])
async def test_what_is_no_text_is_refused(
    tmp_path: Path, name: str, content: bytes, more: dict[str, int]
) -> None:
    """Q-08, L-18: zero bytes, control characters, extension or signature show a binary."""
    (tmp_path / name).write_bytes(content)

    assert await failure_of(READ, tmp_path, path=name, **more) == f"Cannot read binary file: {name}"


@pytest.mark.parametrize("more", [{}, {"limit": 5}])
async def test_malformed_text_is_the_generic_error(tmp_path: Path, more: dict[str, int]) -> None:
    """L-19: the tool does not guess an encoding."""
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 au lait")

    assert await failure_of(READ, tmp_path, path="a.txt", **more) == "Unable to read a.txt"


async def test_a_byte_order_mark_is_not_text(tmp_path: Path) -> None:
    """L-13: the mark states the encoding and is not content."""
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfhello\n")

    assert (await run_call(READ, tmp_path, path="a.txt")).structured["content"] == "hello\n"
    assert (await run_call(READ, tmp_path, path="a.txt", limit=1)).structured["content"] == "hello"


async def test_a_directory_lists_directories_first(tmp_path: Path) -> None:
    """L-13, L-25: entries are sorted by name; links that leave the directory are left out."""
    here = tmp_path / "here"
    (here / "zeta").mkdir(parents=True)
    (here / "b.txt").write_text("")
    (here / "a.txt").write_text("")
    (here / "alias").symlink_to("zeta")
    (here / "out").symlink_to(tmp_path)
    (here / "dangling").symlink_to("nowhere")
    os.mkdir(os.fsencode(here) + b"/\xff")  # noqa: PTH102

    listing = await run_call(READ, here, path=".")
    page = await run_call(READ, here, path=".", offset=2, limit=2)

    assert listing.structured["entries"] == [
        {"name": "alias/", "type": "directory"},
        {"name": "zeta/", "type": "directory"},
        {"name": "\ufffd/", "type": "directory"},
        {"name": "a.txt", "type": "file"},
        {"name": "b.txt", "type": "file"},
    ]
    assert text(listing) == "alias/\nzeta/\n\ufffd/\na.txt\nb.txt"
    assert [entry["name"] for entry in page.structured["entries"]] == ["zeta/", "\ufffd/"]
    assert page.structured["next"] == 4


async def test_what_is_missing_inside_is_said_before_anybody_is_asked(tmp_path: Path) -> None:
    """L-26: inside the location the tool looks before it asks."""
    with pytest.raises(CallFailed, match="Unable to read missing"):
        await required_permissions(READ, tmp_path, path="missing")


async def test_outside_nothing_is_looked_at_before_approval(tmp_path: Path) -> None:
    """L-26: a missing file outside needs permission like any other, and fails afterwards."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    path = str(tmp_path / "there/missing")

    needs = await required_permissions(READ, tmp_path / "here", path=path)

    assert [need.action for need in needs] == ["external_directory", "read"]
    assert await failure_of(READ, tmp_path / "here", path=path) == f"Unable to read {path}"


async def test_asking_opens_no_file(tmp_path: Path) -> None:
    """L-26, L-35: opening a pipe without a writer would wait for ever, and could be noticed."""
    os.mkfifo(tmp_path / "pipe")

    assert len(await required_permissions(READ, tmp_path, path="pipe")) == 1
    assert await failure_of(READ, tmp_path, path="pipe") == "Unable to read pipe"


async def test_a_defect_of_the_machine_is_not_taken_for_a_bad_path(tmp_path: Path) -> None:
    """L-27: reading the start of a process's memory is an input/output error."""
    path = f"/proc/{os.getpid()}/mem"

    message = await failure_of(READ, tmp_path, path=path)

    assert message.startswith("Tool execution failed: [Errno 5]")


class SingleOutput:
    """A store that holds one managed output."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def is_managed(self, path: str) -> bool:
        return path.startswith("/outputs/")

    @asynccontextmanager
    async def open_file(self, path: str, _context: CallContext) -> AsyncIterator[Path | None]:
        yield self._file if path == "/outputs/tool_1" else None


async def test_a_managed_output_is_read_and_searched_like_a_file(tmp_path: Path) -> None:
    """L-13, L-62: no approval for a directory outside is needed."""
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "spool").write_text("one\ntwo\nthree\n")
    outputs = SingleOutput(tmp_path / "spool")
    reader, searcher = read.tool(outputs=outputs), grep.tool(outputs=outputs)

    assert await required_permissions(reader, here, path="/outputs/tool_1") == (
        Need("read", ("/outputs/tool_1",), ("*",)),
    )
    page = await run_call(reader, here, path="/outputs/tool_1", offset=2, limit=1)
    assert page.structured["content"] == "two"
    assert page.structured["path"] == "/outputs/tool_1"
    matches = await run_call(searcher, here, pattern="thr", path="/outputs/tool_1")
    assert [(match["path"], match["line"]) for match in matches.structured["value"]] == [
        ("/outputs/tool_1", 3)
    ]
    message = await failure_of(reader, here, path="/outputs/tool_2")
    assert message == "Unable to read /outputs/tool_2"


async def test_a_call_that_nobody_kept_the_permission_of_still_runs(tmp_path: Path) -> None:
    """L-12: a worker may run a call without a record of its permissions."""
    (tmp_path / "a.txt").write_text("x")

    output = await READ.execute(
        READ.input.model_validate({"path": "a.txt"}), call_context(tmp_path)
    )

    assert output is not None


@pytest.mark.parametrize("line", ["x" * 12, "x" * 60, "é" * 3000])
async def test_a_page_reaches_the_model_whole(tmp_path: Path, line: str) -> None:
    """J-24, L-14: a page has limits of its own, so no output limit cuts it."""
    (tmp_path / "long.txt").write_text(f"{line}\n" * 5000)
    (reader,) = (tool for tool in builtins(Config()) if tool.name == "read")
    outputs = MemoryOutputs()
    retention = OutputRetention(outputs, OutputLimits(), 1 << 20)

    result = await run_call(reader, tmp_path, path="long.txt")
    bounded_result = await retention.bound(AT, result, limits=reader.limits)

    assert text(result).endswith(
        f"(There is more: continue with offset {result.structured['next']})"
    )
    assert (bounded_result, outputs.outputs) == (result, {})


def test_less_than_a_page_is_shown_where_less_is_configured() -> None:
    """J-24: a smaller limit of the operator applies to pages too."""
    for limits in ({"output_bytes_max": 10_000}, {"output_lines_max": 100}):
        config = Config.model_validate({"tools": limits})
        (reader,) = (tool for tool in builtins(config) if tool.name == "read")

        assert reader.limits is None
