"""Answers runners about the files of locations: snapshots, and reverts that the log has begun."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from fairlead_eventlog.errors import LogError
from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_schema.tools.file_snapshot import (
    CapturedFiles,
    CaptureFiles,
    PreparedRevert,
    PrepareRevert,
    RestoredFiles,
    RestoreFiles,
)
from fairlead_service.config.configuration import Config
from fairlead_service.locations import LocationRefused, locate_in_root
from fairlead_session.revert.plan import StepSpan
from fairlead_session.state.revert import FileTrees
from fairlead_session.state.session import Session
from fairlead_tools.context.project import git_root
from fairlead_tools.file_snapshots import adopt, trees
from fairlead_tools.file_snapshots.capture import capture
from fairlead_tools.file_snapshots.git import GitFailed, GitMissing, find_git
from fairlead_tools.file_snapshots.restore import RestoreFailed, restore
from fairlead_tools.file_snapshots.store import SnapshotStore, StoreBusy, open_store
from fairlead_tools.files.path import printable
from fairlead_tools.metrics import SNAPSHOT_SECONDS, SNAPSHOTS_FAILED

log = logging.getLogger(__name__)

PAUSE_S: Final = 300.0
"""A worktree whose snapshot failed is left alone for so long."""
LOST: Final = "a snapshot of these files is not stored here: it is too old, or of another location"

ReadSession: TypeAlias = Callable[[Address], Awaitable[Session]]
"""The session as the leader of the log holds it."""


class NoSnapshots(Exception):
    """A location without snapshots. The message says why."""


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """A location inside a worktree, and the configured root that holds both."""

    store: SnapshotStore
    directory: Path
    top: Path


class FileSnapshots:
    """Takes snapshots and restores files, in threads. Stores are locked between processes."""

    def __init__(self, config: Config, root: Path) -> None:
        self._config = config
        self._root = root
        self._paused: dict[Path, float] = {}
        self._adopting: set[asyncio.Task[None]] = set()
        self.read_session: ReadSession | None = None
        self.acts: Mapping[str, Callable[..., Awaitable[Model]]] = {
            "capture": self.capture,
            "prepare": self.prepare,
            "restore": self.restore,
        }
        """What runners may ask, by its name in the subject."""

    async def capture(self, question: CaptureFiles) -> CapturedFiles:
        """A snapshot of a location. A failure is only logged: the step goes on without it."""
        at = Address(question.tenant, question.session_id)
        try:
            place = self.find(question.tenant, question.location)
            if self._paused.get(place.store.worktree, 0.0) > time.monotonic():
                return CapturedFiles(unavailable="the last snapshot failed a short while ago")
            with SNAPSHOT_SECONDS.time():
                tree = await asyncio.to_thread(self._capture, place, at)
            self.adopt_later(place.store)
            if question.since is None or question.since == tree:
                return CapturedFiles(snapshot=tree, files=() if question.since else None)
            return CapturedFiles(
                snapshot=tree,
                files=await asyncio.to_thread(_changed_files, place, question.since, tree),
            )
        except NoSnapshots as reason:
            return CapturedFiles(unavailable=str(reason))
        except (GitFailed, OSError) as error:
            SNAPSHOTS_FAILED.inc()
            self._pause(question)
            extra = {"session_id": question.session_id, "reason": str(error)}
            log.warning("snapshot of files failed: the step goes on without it", extra=extra)
            return CapturedFiles(unavailable=str(error))

    async def prepare(self, question: PrepareRevert) -> PreparedRevert:
        """The tree to go back to, with everything in the store that the restore needs."""
        try:
            place = self.find(question.tenant, question.location)
            return await asyncio.to_thread(self._prepare, place, question)
        except (NoSnapshots, GitFailed, OSError) as error:
            return PreparedRevert(refused=str(error))

    async def restore(self, question: RestoreFiles) -> RestoredFiles:
        """Change the files, if the log says that exactly this restore has begun."""
        at = Address(question.tenant, question.session_id)
        try:
            place = self.find(question.tenant, question.location)
            if not await self._is_begun(at, question):
                return RestoredFiles(refused="the log has begun no such restore", again=True)
            return await asyncio.to_thread(self._restore, place, question)
        except (StoreBusy, LogError, RecordError) as error:
            return RestoredFiles(refused=str(error), again=True)
        except (NoSnapshots, GitFailed, RestoreFailed, OSError) as error:
            return RestoredFiles(refused=str(error))

    async def close(self) -> None:
        """Wait for the background work on stores."""
        await asyncio.gather(*self._adopting, return_exceptions=True)

    def find(self, tenant: TenantId, location: LocationRef) -> SnapshotPlace:
        """The worktree and the store of a location. Raises NoSnapshots."""
        if not self._config.snapshots(tenant):
            raise NoSnapshots("snapshots are off: `snapshots` in [location] is false")
        if find_git() is None:
            raise NoSnapshots(str(GitMissing()))
        found = locate_in_root(self._config.roots(tenant), location)
        if isinstance(found, LocationRefused):
            raise NoSnapshots(found.message)
        directory, top = Path(found.directory), Path(found.root)
        worktree = git_root(directory, top)
        if worktree is None:
            name = printable(directory)
            raise NoSnapshots(f"{name} is in no git repository: snapshots need one")
        return SnapshotPlace(open_store(self._root, worktree), directory, top)

    def _capture(self, place: SnapshotPlace, at: Address) -> str:
        with place.store.lock():
            tree = capture(place.store, place.directory, place.top)
            place.store.remember(at, (tree,))
            return tree

    def _prepare(self, place: SnapshotPlace, question: PrepareRevert) -> PreparedRevert:
        store, git = place.store, place.store.git
        with store.lock():
            original = question.original or capture(store, place.directory, place.top)
            steps = tuple(StepSpan(step.start, step.end) for step in question.steps)
            ends = (step.end for step in steps if step.end is not None)
            if not trees.has_trees(git, (original, *(step.start for step in steps), *ends)):
                return PreparedRevert(refused=LOST)
            target = trees.build_target(git, original, steps)
            store.remember(Address(question.tenant, question.session_id), (original, target))
        return PreparedRevert(original=original, target=target)

    def _restore(self, place: SnapshotPlace, question: RestoreFiles) -> RestoredFiles:
        store, git = place.store, place.store.git
        with store.lock():
            if not store.exists or not trees.has_trees(
                git, (question.original, question.before, question.target)
            ):
                return RestoredFiles(refused=LOST)
            changes = trees.compare(git, question.before, question.target)
            restore(git, place.directory, changes)
            diff, files = trees.describe(git, question.original, question.target)
        return RestoredFiles(diff=diff, files=files)

    async def _is_begun(self, at: Address, question: RestoreFiles) -> bool:
        assert self.read_session is not None, "the server answers only while the log is connected"
        session = await self.read_session(at)
        return session.revert.begun == FileTrees(question.original, question.target)

    def _pause(self, question: CaptureFiles) -> None:
        try:
            worktree = self.find(question.tenant, question.location).store.worktree
        except (NoSnapshots, OSError):
            return
        self._paused = {
            path: until for path, until in self._paused.items() if until > time.monotonic()
        }
        self._paused[worktree] = time.monotonic() + PAUSE_S

    def adopt_later(self, store: SnapshotStore) -> None:
        """Copy borrowed objects in the background, so that no step waits for it."""
        if self._adopting or not store.alternates.exists():
            return
        task = asyncio.create_task(asyncio.to_thread(adopt.adopt_objects, store))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)


def _changed_files(place: SnapshotPlace, since: str, tree: str) -> tuple[str, ...] | None:
    """The files that changed; None if that cannot be said (D-36)."""
    try:
        return trees.changed_paths(place.store.git, since, tree)
    except GitFailed:
        return None
