"""`apply_patch` checks the whole patch first and then changes one file after the other."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairlead_session.people.permission import Need
from fairlead_tools.builtin import apply_patch
from fairlead_tools.files import changes
from fairlead_tools.files.changes import Change
from fairlead_tools.registry.tool import CallFailed
from services.tools.tests.file_calls import (
    call_context,
    failure_of,
    required_permissions,
    run_call,
    text,
    try_call,
)

PATCH = apply_patch.tool()


def patch(*hunks: str) -> str:
    return "\n".join(("*** Begin Patch", *hunks, "*** End Patch"))


def add(path: str, line: str = "new") -> str:
    return f"*** Add File: {path}\n+{line}"


def update(path: str, old: str, new: str) -> str:
    return f"*** Update File: {path}\n@@\n-{old}\n+{new}"


def move(path: str, to: str) -> str:
    return f"*** Update File: {path}\n*** Move to: {to}"


def delete(path: str) -> str:
    return f"*** Delete File: {path}"


async def test_a_patch_adds_changes_and_removes(tmp_path: Path) -> None:
    """L-49: the result names each file and its diff; added files end with a line break."""
    (tmp_path / "b.txt").write_text("one\ntwo\n")
    (tmp_path / "c.txt").write_text("gone\n")

    result = await run_call(
        PATCH,
        tmp_path,
        patchText=patch(add("sub/a.txt"), update("b.txt", "two", "2"), delete("c.txt")),
    )

    assert (tmp_path / "sub/a.txt").read_text() == "new\n"
    assert (tmp_path / "b.txt").read_text() == "one\n2\n"
    assert not (tmp_path / "c.txt").exists()
    assert result.structured["applied"] == [
        {"type": "add", "resource": "sub/a.txt", "target": str(tmp_path / "sub/a.txt")},
        {"type": "update", "resource": "b.txt", "target": str(tmp_path / "b.txt")},
        {"type": "delete", "resource": "c.txt", "target": str(tmp_path / "c.txt")},
    ]
    assert [(path["file"], path["status"]) for path in result.structured["files"]] == [
        ("sub/a.txt", "added"),
        ("b.txt", "modified"),
        ("c.txt", "deleted"),
    ]
    assert text(result) == "Applied the patch:\nA sub/a.txt\nM b.txt\nD c.txt"


async def test_a_file_is_moved_and_changed_on_the_way(tmp_path: Path) -> None:
    """P-26, L-43: a move keeps the mode and the line breaks of the file."""
    (tmp_path / "run.sh").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (tmp_path / "run.sh").chmod(0o755)

    result = await run_call(
        PATCH,
        tmp_path,
        patchText=patch(f"{move('run.sh', 'bin/start.sh')}\n@@\n-two\n+2"),
    )

    assert not (tmp_path / "run.sh").exists()
    assert (tmp_path / "bin/start.sh").read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"
    assert stat.S_IMODE((tmp_path / "bin/start.sh").stat().st_mode) == 0o755
    assert result.structured["applied"] == [
        {
            "type": "move",
            "resource": "bin/start.sh",
            "target": str(tmp_path / "bin/start.sh"),
            "origin": "run.sh",
        }
    ]
    assert text(result).endswith("M bin/start.sh (moved from run.sh)")


async def test_a_file_is_not_moved_onto_another(tmp_path: Path) -> None:
    """L-43, L-45: both files stay as they were."""
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_text("b")

    message = await failure_of(PATCH, tmp_path, patchText=patch(move("a.txt", "b.txt")))

    assert message == "Patch verification failed: b.txt exists already"
    assert (tmp_path / "a.txt").read_text() + (tmp_path / "b.txt").read_text() == "ab"


async def test_a_patch_may_touch_a_file_more_than_once(tmp_path: Path) -> None:
    """L-44: each change starts from the result of the changes before it."""
    (tmp_path / "a.txt").write_text("1\n")

    await run_call(
        PATCH,
        tmp_path,
        patchText=patch(
            update("a.txt", "1", "2"),
            update("a.txt", "2", "3"),
            move("a.txt", "b.txt"),
            add("a.txt"),
            move("b.txt", "b.txt") + "\n@@\n-3\n+4",
        ),
    )

    assert (tmp_path / "a.txt").read_text() == "new\n"
    assert (tmp_path / "b.txt").read_text() == "4\n"


async def test_each_directory_outside_is_asked_for_once_and_all_files_together(
    tmp_path: Path,
) -> None:
    """L-44: the directories come first, then one edit; asking reads no file."""
    here, first, second = (tmp_path / name for name in ("here", "one", "two"))
    for directory in (here, first, second):
        directory.mkdir()
    os.mkfifo(here / "pipe")

    needs = await required_permissions(
        PATCH,
        here,
        patchText=patch(
            add(f"{first}/a"),
            add(f"{first}/b"),
            delete("pipe"),
            move("x", f"{second}/c"),
            delete("x"),
        ),
    )

    assert needs[:2] == (
        Need("external_directory", (f"{first}/*",), (f"{first}/*",)),
        Need("external_directory", (f"{second}/*",), (f"{second}/*",)),
    )
    (edit,) = needs[2:]
    files = (f"{first}/a", f"{first}/b", "pipe", "x", f"{second}/c")
    assert (edit.action, edit.resources, edit.save) == ("edit", files, ("*",))


async def test_who_is_asked_sees_what_a_patch_changes(tmp_path: Path) -> None:
    """The lines are those of the patch: the files may have others by then."""
    text = patch("*** Update File: a\n*** Move to: b\n@@\n kept\n-old\n+new", delete("c"))

    (edit,) = await required_permissions(PATCH, tmp_path, patchText=text)

    assert edit.metadata == {
        "diff": "--- a\n+++ b\n@@ -1,2 +1,2 @@\n kept\n-old\n+new\n--- c\n+++ /dev/null\n"
    }


@pytest.mark.parametrize(
    "text", ["nothing", patch("*** Rename File: a"), patch("*** Update File: a\n@@")]
)
async def test_a_malformed_patch_is_refused_before_anybody_is_asked(
    tmp_path: Path, text: str
) -> None:
    """L-40: the error is a failed verification."""
    (tmp_path / "a").write_text("x")
    with pytest.raises(CallFailed, match="Patch verification failed: "):
        await required_permissions(PATCH, tmp_path, patchText=text)


@pytest.mark.parametrize(
    ("bad_hunk", "reason"),
    [
        (update("b.txt", "three", "3"), "b.txt: cannot find these lines:\nthree"),
        (update("none.txt", "a", "b"), "none.txt does not exist"),
        (delete("none.txt"), "none.txt does not exist"),
        (delete("dir"), "dir cannot be read"),
        (add("b.txt"), "b.txt exists already"),
        (move("none.txt", "x"), "none.txt does not exist"),
        (update("bytes", "a", "b"), "bytes is not text"),
    ],
)
async def test_what_does_not_fit_changes_nothing_at_all(
    tmp_path: Path, bad_hunk: str, reason: str
) -> None:
    """P-26, L-45, L-46: the changes before the wrong one are not made either."""
    (tmp_path / "b.txt").write_text("one\ntwo\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "dir").mkdir()

    message = await failure_of(PATCH, tmp_path, patchText=patch(add("a.txt"), bad_hunk))

    assert message == f"Patch verification failed: {reason}"
    assert sorted(os.listdir(tmp_path)) == ["b.txt", "bytes", "dir"]  # noqa: PTH208
    assert (tmp_path / "b.txt").read_text() == "one\ntwo\n"


async def test_a_file_that_appears_while_somebody_decides_is_not_overwritten(
    tmp_path: Path,
) -> None:
    """L-46: the check runs when the call runs."""
    result = await try_call(
        PATCH,
        tmp_path,
        while_deciding=lambda: (tmp_path / "a.txt").write_text("theirs"),
        patchText=patch(add("a.txt")),
    )

    assert getattr(result, "message", None) == "Patch verification failed: a.txt exists already"
    assert (tmp_path / "a.txt").read_text() == "theirs"


async def test_a_later_failure_tells_what_was_done_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-46, L-47: earlier changes stay, and later ones are not made."""
    (tmp_path / "b.txt").write_text("b\n")

    def change_after_other_writer(change: Change) -> None:
        if change.place.resource == "c.txt":
            (tmp_path / "c.txt").write_text("theirs")
        changes.apply_change(change)

    monkeypatch.setattr(apply_patch, "apply_change", change_after_other_writer)
    message = await failure_of(
        PATCH,
        tmp_path,
        patchText=patch(add("a.txt"), update("b.txt", "b", "B"), add("c.txt"), add("d.txt")),
    )

    assert message == (
        "Patch failed at c.txt: it exists already. Applied before that:\nA a.txt\nM b.txt"
    )
    assert (tmp_path / "b.txt").read_text() == "B\n"
    assert (tmp_path / "c.txt").read_text() == "theirs"
    assert not (tmp_path / "d.txt").exists()


async def test_a_file_that_changes_after_the_check_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-09, L-47: every change expects the bytes that it was planned for."""
    (tmp_path / "b.txt").write_text("b\n")

    def change_after_other_writer(change: Change) -> None:
        (tmp_path / "b.txt").write_text("theirs")
        changes.apply_change(change)

    monkeypatch.setattr(apply_patch, "apply_change", change_after_other_writer)
    message = await failure_of(PATCH, tmp_path, patchText=patch(update("b.txt", "b", "B")))

    assert message == (
        "Patch failed at b.txt: it has changed since; read it again. Applied before that:\nnothing"
    )
    assert (tmp_path / "b.txt").read_text() == "theirs"


async def test_an_interrupt_lets_the_current_change_finish_and_makes_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-48: a change is either complete or not made."""
    started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()

    def apply_slowly(change: Change) -> None:
        loop.call_soon_threadsafe(started.set_result, None)
        time.sleep(0.1)
        changes.apply_change(change)

    monkeypatch.setattr(apply_patch, "apply_change", apply_slowly)
    input_ = PATCH.input.model_validate({"patchText": patch(add("a.txt"), add("b.txt"))})
    run = asyncio.ensure_future(PATCH.execute(input_, call_context(tmp_path)))
    await started
    run.cancel()

    with pytest.raises(asyncio.CancelledError):
        await run
    assert (tmp_path / "a.txt").read_text() == "new\n"
    assert not (tmp_path / "b.txt").exists()


APPLY = """
import sys
from fairlead_tools.files.changes import apply_change, plan_changes
from fairlead_tools.files.patch import Add
from fairlead_tools.files.path import resolve
hunks = tuple(Add(f"{number:04}.txt", "x" * 20_000) for number in range(2000))
changes = plan_changes(hunks, {hunk.path: resolve(sys.argv[1], hunk.path) for hunk in hunks})
print("ready", flush=True)
for change in changes:
    apply_change(change)
"""


def test_a_death_in_the_middle_keeps_the_changes_made_so_far(tmp_path: Path) -> None:
    """L-48: the changes on disk are complete, and they are the first ones of the patch."""
    worker = subprocess.Popen([sys.executable, "-c", APPLY, str(tmp_path)], stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"ready\n"
    while not (tmp_path / "0003.txt").exists():
        time.sleep(0.001)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()

    names = sorted(path.name for path in tmp_path.glob("*.txt"))
    assert names == [f"{number:04}.txt" for number in range(len(names))]
    assert 4 <= len(names) < 2000
    assert all((tmp_path / file_name).read_text() == "x" * 20_000 for file_name in names)


def test_a_patch_is_never_repeated_by_itself() -> None:
    """L-48: a second run would find the changes of the first."""
    assert PATCH.retry == "once"
    assert PATCH.permission == "edit"
