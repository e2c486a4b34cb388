"""Changes that move with their session: what both ends look like, and what stops a move."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead_schema.events import (
    MoveBegun,
    MoveRequested,
    SessionCreated,
    SessionEvent,
    SessionMoved,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address
from fairlead_schema.tools.file_transfer import (
    PreparedTransfer,
    PrepareTransfer,
    TransferFiles,
    TransferredFiles,
    TransferTrees,
)
from fairlead_service.config.configuration import Config
from fairlead_session.state.session import Session
from fairlead_tools.file_snapshots.service import FileSnapshots
from fairlead_tools.file_snapshots.transfer_service import FileTransfers
from services.tools.tests.file_snapshots.conftest import MakeWorktree, Worktree, own_git
from services.tools.tests.file_snapshots.test_service import fold

REQUEST = 2


class Ends:
    """A source, a clone as destination, and the log that a runner writes meanwhile."""

    def __init__(self, source: Worktree, destination: Worktree, inner: str = ".") -> None:
        self.source = source
        self.destination = destination
        config = Config.model_validate({"location": {"roots": [str(source.root.parent)]}})
        self.snapshots = FileSnapshots(config, source.store.directory.parent)
        self.transfers = FileTransfers(self.snapshots)
        self.here = LocationRef(directory=str(source.root / inner))
        self.there = LocationRef(directory=str(destination.root / inner))
        self.log: list[SessionEvent] = [
            SessionCreated(title="t", project_id="p", location=self.here),
            MoveRequested(location=self.there),
        ]
        self.snapshots.read_session = self._read

    async def _read(self, _at: Address) -> Session:
        return fold(*self.log)

    async def prepare(self) -> PreparedTransfer:
        prepared = await self.transfers.prepare(
            PrepareTransfer(
                tenant="default", session_id="ses_1", source=self.here, destination=self.there
            )
        )
        await self.snapshots.close()
        if prepared.trees is not None:
            self.log.append(
                MoveBegun(**prepared.trees.model_dump(), subdirectory=prepared.subdirectory)
            )
        return prepared

    def question(self, trees: TransferTrees) -> TransferFiles:
        return TransferFiles(
            tenant="default",
            session_id="ses_1",
            source=self.here,
            destination=self.there,
            request=REQUEST,
            trees=trees,
        )

    async def begin(self) -> TransferTrees:
        prepared = await self.prepare()
        assert prepared.trees is not None, prepared
        return prepared.trees

    async def move(self) -> TransferredFiles:
        """Everything that a runner does, in its order."""
        trees = await self.begin()
        applied = await self.transfers.apply(self.question(trees))
        assert applied == TransferredFiles()
        self.log.append(SessionMoved(location=self.there))
        return await self.transfers.discard(self.question(trees))


MakeEnds = Callable[..., Ends]


@pytest.fixture
def ends(make_worktree: MakeWorktree, tmp_path: Path) -> MakeEnds:
    """A source with commits, and a second worktree of the same repository."""

    def make(inner: str = ".") -> Ends:
        source = make_worktree("source")
        source.write("packages/tracked.txt", "initial\n")
        source.write("packages/staged.txt", "initial\n")
        source.write("top.txt", "initial\n")
        source.commit()
        destination = make_worktree("destination")
        destination.root.joinpath(".git").rename(tmp_path / "unused")
        destination.root.rmdir()
        own_git(source.root, "worktree", "add", "-q", "--detach", str(destination.root), "HEAD")
        return Ends(source, destination, inner)

    return make


def text(worktree: Worktree, path: str) -> str | None:
    file = worktree.root / path
    return file.read_text() if file.exists() else None


async def test_changes_are_applied_there_and_discarded_here(ends: MakeEnds) -> None:
    """N-17: tracked and untracked changes, a deletion, a program, a link and bytes that are no text."""
    both = ends()
    source, destination = both.source, both.destination
    source.write("packages/tracked.txt", "changed\n")
    source.write("new/untracked.bin", b"\0\xff\x00binary")
    source.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    (source.root / "link").symlink_to("top.txt")
    (source.root / "top.txt").unlink()

    assert await both.move() == TransferredFiles()

    assert text(destination, "packages/tracked.txt") == "changed\n"
    assert (destination.root / "new/untracked.bin").read_bytes() == b"\0\xff\x00binary"
    assert os.access(destination.root / "run.sh", os.X_OK)
    assert (destination.root / "link").readlink() == Path("top.txt")
    assert text(destination, "top.txt") is None
    assert text(source, "packages/tracked.txt") == "initial\n"
    assert text(source, "top.txt") == "initial\n"
    assert own_git(source.root, "status", "--porcelain") == ""


async def test_only_the_subtree_moves_and_the_index_stays(ends: MakeEnds) -> None:
    """N-19: staged entries and unrelated files at the source survive."""
    both = ends("packages")
    source, destination = both.source, both.destination
    source.write("packages/tracked.txt", "changed\n")
    source.write("packages/staged.txt", "staged\n")
    own_git(source.root, "add", "packages/staged.txt")
    source.write("packages/untracked.txt", "new\n")
    source.write("top.txt", "unrelated\n")
    source.write("other.txt", "unrelated\n")
    prepared = await both.prepare()
    both.log.pop()
    assert prepared.subdirectory == "packages"

    assert await both.move() == TransferredFiles()

    assert text(destination, "packages/tracked.txt") == "changed\n"
    assert text(destination, "packages/staged.txt") == "staged\n"
    assert text(destination, "packages/untracked.txt") == "new\n"
    assert (text(destination, "top.txt"), text(destination, "other.txt")) == ("initial\n", None)
    assert text(source, "packages/tracked.txt") == "initial\n"
    status = own_git(source.root, "status", "--porcelain").splitlines()
    assert sorted(status) == [" M top.txt", "?? other.txt", "M  packages/staged.txt"]


async def test_inside_one_checkout_nothing_is_transferred(ends: MakeEnds) -> None:
    """N-18: only the subpath is new."""
    both = ends()
    both.source.write("top.txt", "changed\n")
    both.there = LocationRef(directory=str(both.source.root / "packages"))

    assert await both.prepare() == PreparedTransfer(subdirectory="packages")

    assert text(both.source, "top.txt") == "changed\n"


async def test_a_clean_source_moves_without_a_transfer(ends: MakeEnds) -> None:
    """N-17: with nothing to take along the session only moves."""
    both = ends()
    (both.source.root / "top.txt").touch()

    assert await both.prepare() == PreparedTransfer()


async def test_changes_fit_beside_other_changes_of_the_same_file(ends: MakeEnds) -> None:
    """N-17: a patch is applied, so lines that only the destination has stay."""
    both = ends()
    lines = [f"{number}\n" for number in range(40)]
    for worktree in (both.source, both.destination):
        worktree.write("long.txt", "".join(lines))
    own_git(both.source.root, "add", "long.txt")
    own_git(both.source.root, "commit", "-qm", "long")
    both.source.write("long.txt", "".join(["here\n", *lines[1:]]))
    both.destination.write("long.txt", "".join([*lines[:-1], "there\n"]))

    assert await both.move() == TransferredFiles()

    assert text(both.destination, "long.txt") == "".join(["here\n", *lines[1:-1], "there\n"])
    assert text(both.source, "long.txt") == "".join(lines)


@pytest.mark.parametrize(
    "conflict",
    [
        pytest.param(("top.txt", "other\n"), id="tracked"),
        pytest.param(("new.txt", "other\n"), id="untracked"),
        pytest.param(("ignored.txt", "other\n"), id="ignored"),
    ],
)
async def test_a_conflict_changes_nothing_on_either_side(
    ends: MakeEnds, conflict: tuple[str, str]
) -> None:
    """N-20: the destination has other content at the same place."""
    both = ends()
    path, content = conflict
    both.source.write("packages/tracked.txt", "changed\n")
    both.source.write(path, "changed\n")
    both.destination.write(path, content)
    if path == "ignored.txt":
        both.destination.write(".gitignore", "ignored.txt\n")

    prepared = await both.prepare()

    assert prepared.trees is None
    assert path in (prepared.refused or "")
    assert text(both.destination, path) == content
    assert text(both.destination, "packages/tracked.txt") == "initial\n"
    assert text(both.source, path) == "changed\n"


async def test_what_no_snapshot_holds_stops_the_move(ends: MakeEnds) -> None:
    """N-20: a capture that would leave a change behind is refused, and so is a merge."""
    both = ends()
    large = both.source.write("large.bin", b"x" * (3 << 20))
    assert "'large.bin' is too large" in ((await both.prepare()).refused or "")
    large.unlink()
    own_git(both.source.root, "checkout", "-qb", "side")
    both.source.write("top.txt", "side\n")
    both.source.commit()
    own_git(both.source.root, "checkout", "-q", "-")
    both.source.write("top.txt", "main\n")
    both.source.commit()
    with pytest.raises(subprocess.CalledProcessError):
        own_git(both.source.root, "merge", "side")
    assert "in the middle of a merge" in ((await both.prepare()).refused or "")


async def test_a_location_without_git_or_outside_the_roots_is_refused(
    ends: MakeEnds, tmp_path: Path
) -> None:
    """N-20: nothing is captured, and the message names the reason."""
    both = ends()
    both.source.write("top.txt", "changed\n")
    plain = tmp_path / "plain"
    plain.mkdir()
    both.there = LocationRef(directory=str(plain))
    assert "in no git repository" in ((await both.prepare()).refused or "")
    both.there = LocationRef(directory="/")
    assert (await both.prepare()).refused is not None
    assert text(both.source, "top.txt") == "changed\n"


async def test_a_transfer_that_the_log_has_not_begun_changes_nothing(ends: MakeEnds) -> None:
    """A late worker, another request, and a discard before the move are turned away."""
    both = ends()
    both.source.write("top.txt", "changed\n")
    trees = await both.begin()
    question = both.question(trees)

    early = await both.transfers.discard(question)
    other = await both.transfers.apply(question.model_copy(update={"request": 9}))
    both.log.append(SessionMoved(location=both.there))
    late = await both.transfers.apply(question)

    assert [answer.again for answer in (early, other, late)] == [True, True, True]
    assert text(both.source, "top.txt") == "changed\n"
    assert text(both.destination, "top.txt") == "initial\n"


async def test_a_repeated_apply_and_discard_change_nothing_more(ends: MakeEnds) -> None:
    """An answer that was lost: what a person wrote since then stays."""
    both = ends()
    both.source.write("top.txt", "changed\n")
    trees = await both.begin()
    question = both.question(trees)
    await both.transfers.apply(question)
    both.destination.write("top.txt", "newer\n")

    assert await both.transfers.apply(question) == TransferredFiles()

    assert text(both.destination, "top.txt") == "newer\n"
    both.log.append(SessionMoved(location=both.there))
    for _ in range(2):
        assert await both.transfers.discard(question) == TransferredFiles()
    assert text(both.source, "top.txt") == "initial\n"


async def test_a_destination_that_changed_after_the_intent_is_refused(ends: MakeEnds) -> None:
    """N-20: nobody overwrites a file that the log does not know."""
    both = ends()
    both.source.write("top.txt", "changed\n")
    both.source.write("new.txt", "changed\n")
    trees = await both.begin()
    both.destination.write("new.txt", "newer\n")

    refused = await both.transfers.apply(both.question(trees))

    assert not refused.again
    assert "'new.txt'" in (refused.refused or "")
    assert text(both.destination, "top.txt") == "initial\n"


async def test_a_source_that_changed_meanwhile_is_reported(ends: MakeEnds) -> None:
    """N-20: the newer file stays, the others are discarded."""
    both = ends()
    both.source.write("top.txt", "changed\n")
    both.source.write("new.txt", "changed\n")
    trees = await both.begin()
    await both.transfers.apply(both.question(trees))
    both.log.append(SessionMoved(location=both.there))
    both.source.write("top.txt", "newer\n")

    reported = await both.transfers.discard(both.question(trees))

    assert "'top.txt'" in (reported.refused or "")
    assert (text(both.source, "top.txt"), text(both.source, "new.txt")) == ("newer\n", None)


DYING = """
import sys
from pathlib import Path
from fairlead_schema.subjects import Address
from fairlead_tools.file_snapshots import transfer
from fairlead_tools.file_snapshots.store import open_store

stores, worktree, before, target = sys.argv[1:]
store = open_store(Path(stores), Path(worktree))
with store.lock():
    note = transfer.note_of(store, Address("default", "ses_1"), 2, target)
    transfer.apply(store, Path(worktree), note, before, target)
"""


def die_in_apply(many: Path, *arguments: str) -> None:
    """A worker that applies changes, until some files are written."""
    with subprocess.Popen([sys.executable, "-c", DYING, *arguments]) as process:
        until = time.monotonic() + 60
        while not (many.exists() and len(list(many.iterdir())) > 5) and time.monotonic() < until:
            time.sleep(0.0005)
        process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("meanwhile", [None, "newer\n"])
async def test_a_worker_killed_in_an_apply_ends_in_one_of_two_states(
    ends: MakeEnds, meanwhile: str | None
) -> None:
    """SIGKILL between two files: the next worker goes on, or goes back if a person changed a file."""
    both = ends()
    count = 400
    for index in range(count):
        both.source.write(f"many/{index:04}.txt", f"{index}\n")
    trees = await both.begin()
    many = both.destination.root / "many"
    arguments = [str(both.source.store.directory.parent), str(both.destination.root)]
    await asyncio.to_thread(die_in_apply, many, *arguments, trees.before, trees.target)
    written = [path for path in many.iterdir() if path.suffix == ".txt"]
    assert 0 < len(written) < count, "the worker died in the middle"
    if meanwhile is not None:
        (many / f"{count - 1:04}.txt").write_text(meanwhile)

    applied = await both.transfers.apply(both.question(trees))

    left = {path.name for path in many.iterdir() if path.suffix == ".txt"}
    if meanwhile is None:
        assert applied == TransferredFiles()
        assert len(left) == count
    else:
        assert "changed meanwhile" in (applied.refused or "")
        assert left == {f"{count - 1:04}.txt"}
    assert len(list((both.source.root / "many").iterdir())) == count


async def test_index_objects_survive_in_the_store(ends: MakeEnds) -> None:
    """N-19: the source's own repository may lose objects between the intent and the discard."""
    both = ends()
    both.source.write("top.txt", "changed\n")
    trees = await both.begin()
    await both.transfers.apply(both.question(trees))
    both.log.append(SessionMoved(location=both.there))
    objects = both.source.root / ".git" / "objects"
    objects.rename(objects.with_name("gone"))

    assert await both.transfers.discard(both.question(trees)) == TransferredFiles()

    assert text(both.source, "top.txt") == "initial\n"
