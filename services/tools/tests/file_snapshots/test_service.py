"""The tools service and the files of a location: what it captures, prepares and restores, and when not."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import START
from fairlead_schema.events import (
    RevertBegun,
    RevertRequested,
    SessionCreated,
    SessionEvent,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft, record
from fairlead_schema.subjects import Address
from fairlead_schema.tools.file_snapshot import (
    CaptureFiles,
    PreparedRevert,
    PrepareRevert,
    RestoredFiles,
    RestoreFiles,
    StepFiles,
)
from fairlead_service.config.configuration import Config
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.session import Session
from fairlead_tools.file_snapshots import git as git_module
from fairlead_tools.file_snapshots import pruning
from fairlead_tools.file_snapshots.service import LOST, FileSnapshots
from fairlead_tools.file_snapshots.store import SnapshotStore
from fairlead_tools.private_directory import open_private_directory
from fairlead_tools.session_files import remove_snapshots
from services.tools.tests.file_snapshots.conftest import Worktree

AT = Address("default", "ses_1")


def fold(*events: SessionEvent) -> Session:
    drafts = tuple(Draft(f"evt_{seq}", seq, event) for seq, event in enumerate(events, start=1))
    session = Session(id="ses_1")
    for recorded in record(drafts, after=0):
        session = evolve(session, recorded)
    return session


def reader(*events: SessionEvent) -> Callable[[Address], Awaitable[Session]]:
    async def read(_at: Address) -> Session:
        return fold(*events)

    return read


def begun(original: str, target: str) -> Callable[[Address], Awaitable[Session]]:
    created = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
    request = RevertRequested(action="stage", message_id="msg_1")
    return reader(created, request, RevertBegun(original=original, target=target))


class Service:
    """The service of one worktree."""

    def __init__(self, worktree: Worktree, **location: object) -> None:
        roots = {"roots": [str(worktree.root.parent)]} | location
        config = Config.model_validate({"location": roots})
        self.files = FileSnapshots(config, worktree.store.directory.parent)
        self.location = LocationRef(directory=str(worktree.root))

    async def capture(self, since: str | None = None, location: str | None = None) -> str:
        where = self.location if location is None else LocationRef(directory=location)
        captured = await self.files.capture(
            CaptureFiles(tenant="default", session_id="ses_1", location=where, since=since)
        )
        await self.files.close()
        assert captured.snapshot is not None, captured.unavailable
        return captured.snapshot

    async def prepare(self, *steps: StepFiles, original: str | None = None) -> PreparedRevert:
        return await self.files.prepare(
            PrepareRevert(
                tenant="default",
                session_id="ses_1",
                location=self.location,
                steps=steps,
                original=original,
            )
        )

    async def restore(self, original: str, before: str, target: str) -> RestoredFiles:
        return await self.files.restore(
            RestoreFiles(
                tenant="default",
                session_id="ses_1",
                location=self.location,
                original=original,
                before=before,
                target=target,
            )
        )


async def test_a_revert_goes_back_and_returns(worktree: Worktree) -> None:
    """N-02 to N-07: stage, stage again, and clear, by what a runner asks."""
    service = Service(worktree)
    worktree.write("a.txt", "0\n")
    worktree.commit()
    first = await service.capture()
    worktree.write("a.txt", "1\n")
    second = await service.capture(since=first)
    worktree.write("a.txt", "2\n")
    worktree.write("b.txt", "2\n")

    prepared = await service.prepare(
        StepFiles(start=first, end=second), StepFiles(start=second), original=None
    )
    assert prepared.original is not None
    assert prepared.target == first
    service.files.read_session = begun(prepared.original, first)
    staged = await service.restore(prepared.original, prepared.original, first)
    assert {(file.path, file.status) for file in staged.files} == {
        ("a.txt", "modified"),
        ("b.txt", "deleted"),
    }
    assert (worktree.root / "a.txt").read_text() == "0\n"

    later = await service.prepare(StepFiles(start=second), original=prepared.original)
    assert later.original == prepared.original
    assert later.target == second
    service.files.read_session = begun(prepared.original, second)
    await service.restore(prepared.original, first, second)
    assert (worktree.root / "a.txt").read_text() == "1\n"

    service.files.read_session = begun(prepared.original, prepared.original)
    cleared = await service.restore(prepared.original, second, prepared.original)
    assert cleared == RestoredFiles()
    assert (worktree.root / "a.txt").read_text() == "2\n"
    assert (worktree.root / "b.txt").read_text() == "2\n"


async def test_nothing_is_restored_that_the_log_has_not_begun(worktree: Worktree) -> None:
    """A paused runner asks for a restore that another runner has finished: no file changes."""
    service = Service(worktree)
    worktree.write("a.txt", "0\n")
    first = await service.capture()
    worktree.write("a.txt", "1\n")
    second = await service.capture()
    service.files.read_session = begun(first, first)

    refused = await service.restore(second, second, first)

    assert refused.again
    assert (worktree.root / "a.txt").read_text() == "1\n"


async def test_a_location_without_snapshots_says_why(
    worktree: Worktree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N-12: no repository, a root elsewhere, snapshots that are off, and no git at all."""
    plain = tmp_path / "plain"
    plain.mkdir()
    service, off = Service(worktree), Service(worktree, snapshots=False)

    async def reason(service: Service, location: Path) -> str | None:
        question = CaptureFiles(
            tenant="default",
            session_id="ses_1",
            location=LocationRef(directory=str(location)),
        )
        return (await service.files.capture(question)).unavailable

    assert "is in no git repository" in str(await reason(service, plain))
    assert "outside the configured roots" in str(await reason(service, Path("/")))
    assert "snapshots are off" in str(await reason(off, worktree.root))
    monkeypatch.setattr(git_module, "find_git", lambda: None)
    monkeypatch.setattr("fairlead_tools.file_snapshots.service.find_git", lambda: None)
    assert "git is not installed" in str(await reason(service, worktree.root))
    assert "git is not installed" in str((await service.prepare()).refused)


async def test_a_snapshot_that_fails_is_only_logged(
    worktree: Worktree, caplog: pytest.LogCaptureFixture
) -> None:
    """N-12: and the worktree is left alone for a while."""
    service = Service(worktree)
    await service.capture()
    (worktree.store.repository / "HEAD").unlink()

    question = CaptureFiles(tenant="default", session_id="ses_1", location=service.location)
    failed = await service.files.capture(question)
    again = await service.files.capture(question)

    assert failed.snapshot is None
    assert "git failed" in str(failed.unavailable)
    assert "a short while ago" in str(again.unavailable)
    assert "the step goes on without it" in caplog.text


async def test_trees_of_another_store_are_refused(worktree: Worktree) -> None:
    """A pruned snapshot, or one of the location before a move: no file changes."""
    service = Service(worktree)
    await service.capture()

    assert (await service.prepare(StepFiles(start="1" * 40))).refused == LOST
    service.files.read_session = begun("1" * 40, "2" * 40)
    assert (await service.restore("1" * 40, "1" * 40, "2" * 40)).refused == LOST


KILLED = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from fairlead_tools.file_snapshots import restore as module, trees
    from fairlead_tools.file_snapshots.store import SnapshotStore

    directory, worktree, before, after = sys.argv[1:]
    store = SnapshotStore(Path(directory), Path(worktree))
    write = module._write

    def slow(*arguments):
        write(*arguments)
        print("changed", flush=True)
        sys.stdin.readline()

    module._write = slow
    with store.lock():
        changes = trees.compare(store.git, before, after)
        module.restore(store.git, store.worktree, changes)
    """
)


def killed_restore(worktree: Worktree, before: str, after: str, files: int) -> None:
    """A worker that is killed after so many files."""
    arguments = [str(worktree.store.directory), str(worktree.root), before, after]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for _ in range(files):
        assert process.stdout.readline() == b"changed\n"
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert process.stdout.readline() == b"changed\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize("files", [0, 2])
async def test_a_killed_restore_is_finished_by_the_next_worker(
    worktree: Worktree, files: int
) -> None:
    """SIGKILL in the middle of a restore: some files are old, some new; then all are new."""
    service = Service(worktree)
    names = [f"{index}.txt" for index in range(4)]
    for name in names:
        worktree.write(name, "before\n")
    first = await service.capture()
    for name in names:
        worktree.write(name, "after\n")
    second = await service.capture()
    service.files.read_session = begun(second, first)
    killed_restore(worktree, second, first, files)
    mixed = {(worktree.root / name).read_text() for name in names}
    assert mixed == {"before\n", "after\n"}

    restored = await service.restore(second, second, first)

    assert restored.refused is None
    assert {(worktree.root / name).read_text() for name in names} == {"before\n"}
    assert len(restored.files) == len(names)
    leftovers = [path for path in worktree.root.iterdir() if path.name.endswith(".fairlead")]
    assert leftovers == []


async def test_snapshots_of_purged_and_old_sessions_are_freed(
    worktree: Worktree, tmp_path: Path
) -> None:
    """A purge of a session frees its snapshots; what another session keeps stays."""
    private = open_private_directory(str(tmp_path / "private"))
    private.snapshots.mkdir()
    store = SnapshotStore(private.snapshots / "one", worktree.root)
    mine = Worktree(worktree.root, store)
    purged, kept, old = (Address("default", f"ses_{name}") for name in ("purged", "kept", "old"))
    trees = {}
    for at in (purged, old, kept):
        mine.write("a.txt", f"{at.session_id}\n" * 100)
        trees[at] = mine.capture()
        store.remember(at, (trees[at],))
    long_ago = time.time() - 15 * pruning.DAY_S
    os.utime(store.notes(old), (long_ago, long_ago))
    log = MemoryLog()
    created = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
    await log.append(kept, "cmt_1", (Draft("evt_1", 1, created),), after=START)

    await remove_snapshots(private, log, ToolsConfig())

    assert store.sessions() == (kept,)
    assert mine.files(trees[kept]) == {"a.txt"}
    for at in (purged, old):
        with pytest.raises(git_module.GitFailed):
            mine.files(trees[at])
    mine.write("b.txt")
    assert mine.files(mine.capture()) == {"a.txt", "b.txt"}


async def test_a_full_store_forgets_its_oldest_sessions(worktree: Worktree) -> None:
    store = worktree.store
    for index in range(4):
        worktree.write("a.bin", os.urandom(20_000))
        at = Address("default", f"ses_{index}")
        store.remember(at, (worktree.capture(),))
        os.utime(store.notes(at), (index + 1, index + 1))

    assert not pruning.shrink(store, 1 << 30)
    before = pruning.size_of(store.repository)
    assert pruning.shrink(store, 10_000)

    assert {at.session_id for at in store.sessions()} == {"ses_2", "ses_3"}
    assert pruning.size_of(store.repository) < before


def test_a_store_without_sessions_goes_away(worktree: Worktree) -> None:
    worktree.write("a.txt")
    worktree.capture()

    pruning.prune(worktree.store)

    assert not worktree.store.exists
    assert worktree.files(worktree.capture()) == {"a.txt"}
