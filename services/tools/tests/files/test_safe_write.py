"""Changes to files are atomic, serialised and conditional, and never follow a link."""

import asyncio
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairlead_tools.files import draft, safe_write
from fairlead_tools.files.path import PathRefused, Place, resolve
from fairlead_tools.files.safe_write import FileChanged, FileLocked, run_to_end


def at(directory: Path, path: str) -> Place:
    return resolve(str(directory), path)


def test_a_new_file_is_created_with_its_directories(tmp_path: Path) -> None:
    """L-10: missing parent directories are created."""
    safe_write.create(at(tmp_path, "a/b/c.txt"), b"hello")

    assert (tmp_path / "a/b/c.txt").read_bytes() == b"hello"
    assert os.listdir(tmp_path / "a/b") == ["c.txt"]  # noqa: PTH208


def test_creating_what_exists_fails_and_changes_nothing(tmp_path: Path) -> None:
    """L-10: this holds also for a file that just appeared."""
    place = at(tmp_path, "a.txt")
    (tmp_path / "a.txt").write_text("theirs")

    with pytest.raises(FileExistsError):
        safe_write.create(place, b"mine")

    assert (tmp_path / "a.txt").read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a.txt"]  # noqa: PTH208


def test_of_many_who_create_one_file_one_does(tmp_path: Path) -> None:
    """L-10: the other callers get an error that the file exists."""
    place = at(tmp_path, "a.txt")

    def create(number: int) -> bool:
        try:
            safe_write.create(place, str(number).encode() * 10_000)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        successes = list(pool.map(create, range(8)))

    assert sum(successes) == 1
    assert (tmp_path / "a.txt").read_text() == str(successes.index(True)) * 10_000


def test_a_change_is_made_only_to_the_expected_bytes(tmp_path: Path) -> None:
    """L-09: with other bytes nothing is written."""
    file = tmp_path / "a.txt"
    file.write_text("one")

    safe_write.replace(at(tmp_path, "a.txt"), b"two", expected=b"one")
    with pytest.raises(FileChanged):
        safe_write.replace(at(tmp_path, "a.txt"), b"three", expected=b"one")
    with pytest.raises(FileChanged):
        safe_write.replace(at(tmp_path, "missing"), b"three", expected=b"one")

    assert file.read_text() == "two"
    assert not (tmp_path / "missing").exists()


def test_changes_to_one_file_follow_each_other(tmp_path: Path) -> None:
    """L-08, L-09: eight threads increment a counter, and every successful write counts."""
    file = tmp_path / "count"
    file.write_text("0")
    place = at(tmp_path, "count")

    def count() -> int:
        successes = 0
        for _ in range(20):
            before = file.read_bytes()
            try:
                safe_write.replace(place, str(int(before) + 1).encode(), expected=before)
            except FileChanged:
                continue
            successes += 1
        return successes

    with ThreadPoolExecutor(8) as pool:
        total = sum(future.result() for future in [pool.submit(count) for _ in range(8)])

    assert int(file.read_text()) == total
    assert total >= 20


def test_another_file_does_not_wait(tmp_path: Path) -> None:
    """L-08: the lock is on the file itself."""
    (tmp_path / "held").write_text("x")
    with (tmp_path / "held").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        assert not safe_write.write(at(tmp_path, "free"), b"y").existed

    assert (tmp_path / "free").read_text() == "y"


def test_a_file_that_somebody_never_lets_go_of_is_busy(tmp_path: Path) -> None:
    """L-08: waiting for the lock has a time limit."""
    (tmp_path / "held").write_text("x")
    with (tmp_path / "held").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        with pytest.raises(FileLocked):
            safe_write.write(at(tmp_path, "held"), b"y", lock_s=0.05)

    assert (tmp_path / "held").read_text() == "x"


async def test_a_cancelled_change_is_finished_first(tmp_path: Path) -> None:
    """L-08: the canceller waits until the file is complete."""
    started, resume = threading.Event(), threading.Event()

    def change() -> None:
        started.set()
        resume.wait(10)
        safe_write.write(at(tmp_path, "a.txt"), b"whole")

    task = asyncio.create_task(run_to_end(change))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done()
    resume.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_removing_tells_whether_there_was_anything(tmp_path: Path) -> None:
    """L-11: a missing file is no failure."""
    (tmp_path / "a.txt").write_text("x")

    assert safe_write.remove(at(tmp_path, "a.txt")) is True
    assert safe_write.remove(at(tmp_path, "a.txt")) is False
    assert safe_write.remove(at(tmp_path, "no/such/file")) is False


def test_a_file_that_changed_is_not_removed(tmp_path: Path) -> None:
    """L-09: removal is conditional too."""
    (tmp_path / "a.txt").write_text("new")

    with pytest.raises(FileChanged):
        safe_write.remove(at(tmp_path, "a.txt"), expected=b"old")

    assert (tmp_path / "a.txt").exists()


def test_a_changed_file_keeps_its_permissions(tmp_path: Path) -> None:
    """L-29: an executable script stays executable."""
    file = tmp_path / "run.sh"
    file.write_text("x")
    file.chmod(0o751)

    safe_write.write(at(tmp_path, "run.sh"), b"y")

    assert stat.S_IMODE(file.stat().st_mode) == 0o751


def test_a_link_put_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    """L-05: the target of the link is neither written nor removed."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.write_text("theirs")
    place = at(here, "a.txt")
    (here / "a.txt").symlink_to(there)

    for change in (
        lambda: safe_write.write(place, b"mine"),
        lambda: safe_write.replace(place, b"mine", expected=b"theirs"),
        lambda: safe_write.remove(place),
    ):
        with pytest.raises(OSError, match="symbolic links"):
            change()
    with pytest.raises(FileExistsError):
        safe_write.create(place, b"mine")

    assert there.read_text() == "theirs"


def test_a_pipe_is_neither_written_nor_waited_for(tmp_path: Path) -> None:
    """L-31: only regular files are written."""
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(PathRefused):
        safe_write.write(at(tmp_path, "pipe"), b"x")


LOOP = """
import sys
from fairlead_tools.files import draft, safe_write
from fairlead_tools.files.path import resolve
place = resolve(sys.argv[1], "a.txt")
print("ready", flush=True)
number = 0
while True:
    safe_write.write(place, (str(number % 10) * 300_000).encode())
    number += 1
"""


def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    """L-08, L-48: at any moment the file has its old or its new content."""
    for delay_s in (0.01, 0.04):
        writer = subprocess.Popen(
            [sys.executable, "-c", LOOP, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        while not (tmp_path / "a.txt").exists():
            time.sleep(0.001)
        time.sleep(delay_s)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()

        content = (tmp_path / "a.txt").read_text()
        assert len(content) == 300_000
        assert len(set(content)) == 1


KILLED = """
import os, signal, sys
from fairlead_tools.files import draft, safe_write
from fairlead_tools.files.path import resolve
safe_write.os.fsync = lambda _descriptor: os.kill(os.getpid(), signal.SIGKILL)
safe_write.write(resolve(sys.argv[1], sys.argv[2]), b"new")
"""


@pytest.mark.parametrize("name", ["old.txt", "new.txt"])
def test_a_writer_that_is_killed_leaves_no_draft(tmp_path: Path, name: str) -> None:
    """L-08: an unfinished draft has no name, so it vanishes with the writer."""
    (tmp_path / "old.txt").write_text("old")

    writer = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), name], check=False)

    assert writer.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["old.txt"]
    assert (tmp_path / "old.txt").read_text() == "old"


def test_without_nameless_files_a_draft_has_a_hidden_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-08, L-10: some file systems have no nameless files."""
    monkeypatch.setattr(draft, "_NAMELESS", 0)
    place = resolve(str(tmp_path), "a.txt")

    assert [safe_write.write(place, text) for text in (b"one", b"two")] == [
        (False, None),
        (True, b"one"),
    ]
    with pytest.raises(FileExistsError):
        safe_write.create(place, b"three")

    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "two"
