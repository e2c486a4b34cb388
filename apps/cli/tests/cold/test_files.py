"""The files of stored sessions: whole or not there, found by their digest, readable without a server."""

import asyncio
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from fairlead_cli.__main__ import main
from fairlead_cli.cold.files import ColdFile, list_files, open_file, read_commits, write_file
from fairlead_cli.errors import CommandError
from fairlead_schema.subjects import Address
from fairlead_testing.exports import CHILD, PARENT, export_lines, parent_life, tree_export

LINES = export_lines({PARENT: parent_life()}, scope="session")


def writes(lines: list[bytes]) -> Callable[[BinaryIO], Awaitable[None]]:
    async def write(file: BinaryIO) -> None:
        file.writelines(lines)
        file.flush()

    return write


def count_files(directory: Path) -> int:
    return len(list(directory.iterdir()))


async def write_parent(directory: Path) -> ColdFile:
    return await write_file(directory, PARENT, writes(LINES))


async def test_a_file_is_verified_and_named_by_its_digest(tmp_path: Path) -> None:
    written = await write_parent(tmp_path / "new")

    assert written.path.read_bytes() == b"".join(LINES)
    assert written.path.name == f"{PARENT}.{written.stored.digest[:16]}.fairlead.jsonl"
    assert (written.stored.seq, written.children) == (23, (CHILD,))
    assert open_file(tmp_path / "new", PARENT, written.stored) == written
    (listed,) = list_files(tmp_path / "new")
    assert (listed.session_id, listed.events, listed.digest) == (PARENT, 23, written.stored.digest)
    at = Address("default", PARENT)
    assert len(list(read_commits(tmp_path / "new", at, written.stored) or ())) == len(parent_life())
    assert read_commits(tmp_path, at, written.stored) is None
    assert read_commits(None, at, written.stored) is None


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(LINES[:-1], id="cut"),
        pytest.param([*LINES[:3], LINES[3].replace(b"msg_", b"gsm_"), *LINES[4:]], id="edited"),
        pytest.param(tree_export(), id="more sessions"),
        pytest.param([], id="empty"),
    ],
)
async def test_what_is_no_whole_session_gets_no_name(tmp_path: Path, lines: list[bytes]) -> None:
    with pytest.raises(CommandError):
        await write_file(tmp_path, PARENT, writes(lines))

    assert count_files(tmp_path) == 0


async def test_a_disk_that_is_full_leaves_no_file(tmp_path: Path) -> None:
    """The kernel refuses the bytes, as it does at the end of a disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, before[1]))
    try:
        with pytest.raises(CommandError, match="cannot be written: File too large"):
            await write_parent(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert count_files(tmp_path) == 0


async def test_a_place_that_is_no_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(CommandError, match="cannot be written: Not a directory"):
        await write_parent(tmp_path / "file" / "below")
    with pytest.raises(CommandError, match="cannot be read"):
        list(list_files(tmp_path / "nowhere"))


async def test_only_the_file_of_the_marker_is_opened(tmp_path: Path) -> None:
    written = await write_parent(tmp_path)
    other = written.stored.model_copy(update={"digest": "f" * 64})

    with pytest.raises(CommandError, match="is not the file that holds"):
        open_file(tmp_path, PARENT, other)
    with pytest.raises(CommandError, match="alone"):
        open_file(tmp_path, CHILD, written.stored)
    written.path.unlink()
    with pytest.raises(CommandError, match="no such file"):
        open_file(tmp_path, PARENT, written.stored)


def test_a_file_is_read_as_text_without_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = asyncio.run(write_parent(tmp_path))

    assert main(["cold", "show", str(written.path)]) == 0
    shown = capsys.readouterr().out
    for text in ("Look around", "I look.", "calls bash: completed"):
        assert text in shown
    assert main(["cold", "verify", str(tmp_path)]) == 0
    written.path.write_bytes(b"".join(LINES[:-1]))
    assert main(["cold", "verify", str(tmp_path), "--json"]) == 1
    assert "Truncated" in capsys.readouterr().out


async def test_two_processes_with_one_id_write_two_files(tmp_path: Path) -> None:
    """In containers every process may have the id 1, and they share the directory."""
    others = export_lines({PARENT: parent_life()[:-1]}, scope="session")
    slow: list[ColdFile] = []

    async def write_slowly(file: BinaryIO) -> None:
        file.writelines(others[:5])
        slow.append(await write_parent(tmp_path))
        file.writelines(others[5:])

    written = await write_file(tmp_path, PARENT, write_slowly)

    for one in (written, *slow):
        assert open_file(tmp_path, PARENT, one.stored) == one
    assert count_files(tmp_path) == 2
