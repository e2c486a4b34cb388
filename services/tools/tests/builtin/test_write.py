"""`write` creates and replaces whole files."""

import os
import resource
from pathlib import Path

import pytest

from fairlead_session.people.permission import Need
from fairlead_tools.builtin import write
from services.tools.tests.file_calls import failure_of, required_permissions, run_call, text

WRITE = write.tool()
BOM = b"\xef\xbb\xbf"


async def test_writing_needs_edit_on_the_file(tmp_path: Path) -> None:
    """L-29: an approval for always covers all edits. Who is asked sees what will be written."""
    needs = await required_permissions(WRITE, tmp_path, path="a.txt", content="x\n")

    preview = "--- a.txt\n+++ a.txt\n@@ -0,0 +1 @@\n+x\n"
    assert needs == (Need("edit", ("a.txt",), ("*",), {"diff": preview}),)
    assert WRITE.permission == "edit"
    assert not (tmp_path / "a.txt").exists()


def test_a_write_is_never_repeated_by_itself() -> None:
    """L-29: the file may have changed since, so only the model may write again."""
    assert WRITE.retry == "once"


async def test_a_new_file_is_created_and_an_old_one_overwritten(tmp_path: Path) -> None:
    """L-29: the result says which of the two happened."""
    first = await run_call(WRITE, tmp_path, path="sub/a.txt", content="one")
    second = await run_call(WRITE, tmp_path, path="sub/a.txt", content="two")

    fields = {
        "operation": "write",
        "target": str(tmp_path / "sub/a.txt"),
        "resource": "sub/a.txt",
    }
    assert first.structured == {**fields, "existed": False, "additions": 1, "deletions": 0}
    assert text(first) == "Created sub/a.txt"
    assert second.structured == {**fields, "existed": True, "additions": 1, "deletions": 1}
    assert text(second) == "Wrote sub/a.txt"
    assert (tmp_path / "sub/a.txt").read_text() == "two"
    assert os.listdir(tmp_path / "sub") == ["a.txt"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (BOM + b"old", "new", BOM + b"new"),
        (BOM + b"old", "\ufeffnew", BOM + b"new"),
        (b"old", "\ufeff\ufeffnew", BOM + b"new"),
        (None, "\ufeff\ufeffnew", BOM + b"new"),
        (b"old", "new", b"new"),
        (BOM, "", BOM),
    ],
)
async def test_there_is_at_most_one_byte_order_mark(
    tmp_path: Path, before: bytes | None, content: str, after: bytes
) -> None:
    """L-30: an existing mark stays."""
    if before is not None:
        (tmp_path / "a.txt").write_bytes(before)

    await run_call(WRITE, tmp_path, path="a.txt", content=content)

    assert (tmp_path / "a.txt").read_bytes() == after


@pytest.mark.parametrize("path", ["dir", ".", "file/x", "pipe"])
async def test_what_cannot_be_written_is_one_error(tmp_path: Path, path: str) -> None:
    """L-31: the error text is the same for every reason."""
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")

    message = await failure_of(WRITE, tmp_path, path=path, content="x")

    assert message == f"Unable to write {path}"


async def test_a_full_disk_is_the_same_error(tmp_path: Path) -> None:
    """L-31: the file keeps its content, and no draft is left beside it."""
    (tmp_path / "a.txt").write_text("before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, hard))
    try:
        message = await failure_of(WRITE, tmp_path, path="a.txt", content="x" * (5 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert message == "Unable to write a.txt"
    assert (tmp_path / "a.txt").read_text() == "before"
    assert os.listdir(tmp_path) == ["a.txt"]  # noqa: PTH208


async def test_half_a_character_is_not_written(tmp_path: Path) -> None:
    """L-31: a text that cannot be encoded leaves no file."""
    message = await failure_of(WRITE, tmp_path, path="a.txt", content="x\ud800")

    assert message == "Unable to write a.txt"
    assert os.listdir(tmp_path) == []  # noqa: PTH208
