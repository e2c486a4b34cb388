"""Answers runners about moves with changes: it prepares them, and does what the log has begun."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from fairlead_eventlog.errors import LogError
from fairlead_schema.model import Model
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_schema.tools.file_transfer import (
    PreparedTransfer,
    PrepareTransfer,
    TransferFiles,
    TransferredFiles,
    TransferTrees,
)
from fairlead_session.state.relocation import Transfer
from fairlead_tools.file_snapshots import transfer, trees
from fairlead_tools.file_snapshots.capture import capture
from fairlead_tools.file_snapshots.git import GitFailed
from fairlead_tools.file_snapshots.service import (
    LOST,
    FileSnapshots,
    NoSnapshots,
    SnapshotPlace,
)
from fairlead_tools.file_snapshots.transfer import TransferRefused
from fairlead_tools.file_snapshots.uncommitted import (
    ChangesUnreadable,
    apply_patch,
    find_changes,
)


class FileTransfers:
    """Moves changes between two worktrees of this machine, in threads."""

    def __init__(self, snapshots: FileSnapshots) -> None:
        self._snapshots = snapshots
        self.acts: Mapping[str, Callable[..., Awaitable[Model]]] = {
            "prepare-move": self.prepare,
            "apply": self.apply,
            "discard": self.discard,
        }
        """What runners may ask, by its name in the subject."""

    async def prepare(self, question: PrepareTransfer) -> PreparedTransfer:
        """The trees of a transfer. Inside one checkout nothing is transferred (N-18)."""
        try:
            source = self._snapshots.find(question.tenant, question.source)
            destination = self._snapshots.find(question.tenant, question.destination)
            at = Address(question.tenant, question.session_id)
            prepared = await asyncio.to_thread(_prepare, at, source, destination)
        except (NoSnapshots, ChangesUnreadable, TransferRefused, GitFailed, OSError) as error:
            return PreparedTransfer(refused=str(error))
        self._snapshots.adopt_later(source.store)
        self._snapshots.adopt_later(destination.store)
        return prepared

    async def apply(self, question: TransferFiles) -> TransferredFiles:
        """Change the destination, if the log says that exactly this transfer has begun."""
        return await self._act(question, _apply, moved=False)

    async def discard(self, question: TransferFiles) -> TransferredFiles:
        """Change the source, if the log says that the session has moved with these changes."""
        return await self._act(question, _discard, moved=True)

    async def _act(
        self,
        question: TransferFiles,
        act: Callable[[SnapshotPlace, TransferFiles], None],
        *,
        moved: bool,
    ) -> TransferredFiles:
        try:
            location = question.source if moved else question.destination
            place = self._snapshots.find(question.tenant, location)
            if not await self._is_begun(question, moved=moved):
                return TransferredFiles(refused="the log has begun no such transfer", again=True)
            await asyncio.to_thread(act, place, question)
        except (LogError, RecordError, GitFailed) as error:
            return TransferredFiles(refused=str(error), again=True)
        except (NoSnapshots, TransferRefused, OSError) as error:
            return TransferredFiles(refused=str(error))
        return TransferredFiles()

    async def _is_begun(self, question: TransferFiles, *, moved: bool) -> bool:
        read = self._snapshots.read_session
        assert read is not None, "the server answers only while the log is connected"
        session = await read(Address(question.tenant, question.session_id))
        relocation, asked = session.relocation, question.trees
        begun, request = relocation.begun, relocation.requested
        if begun is None or request is None or relocation.moved is not moved:
            return False
        expected = Transfer(
            question.source,
            asked.before,
            asked.target,
            asked.changed,
            asked.kept,
            begun.subdirectory,
        )
        return begun == expected and request.seq == question.request


def _prepare(at: Address, source: SnapshotPlace, destination: SnapshotPlace) -> PreparedTransfer:
    """The two stores are locked one after the other: moves in both directions never wait in a ring."""
    inner = destination.directory.relative_to(destination.store.worktree)
    subdirectory = None if inner == Path() else inner.as_posix()
    if source.store.worktree == destination.store.worktree:
        return PreparedTransfer(subdirectory=subdirectory)
    with source.store.lock():
        changes = find_changes(source.store, source.directory, source.top)
        if changes is None:
            return PreparedTransfer(subdirectory=subdirectory)
        source.store.remember(at, (changes.changed, changes.kept))
    store = destination.store
    with store.lock():
        before = capture(store, destination.directory, destination.top)
        target = apply_patch(store.git, before, changes.patch)
        transfer.check_destination(store, destination.directory, before, target)
        store.remember(at, (before, target))
    found = TransferTrees(before=before, target=target, changed=changes.changed, kept=changes.kept)
    return PreparedTransfer(trees=found, subdirectory=subdirectory)


def _apply(place: SnapshotPlace, question: TransferFiles) -> None:
    store, asked = place.store, question.trees
    at = Address(question.tenant, question.session_id)
    with store.lock():
        _require(place, asked.before, asked.target)
        note = transfer.note_of(store, at, question.request, asked.target)
        transfer.apply(store, place.directory, note, asked.before, asked.target)


def _discard(place: SnapshotPlace, question: TransferFiles) -> None:
    with place.store.lock():
        _require(place, question.trees.changed, question.trees.kept)
        transfer.discard(place.store, place.directory, question.trees.changed, question.trees.kept)


def _require(place: SnapshotPlace, *names: str) -> None:
    if not place.store.exists or not trees.has_trees(place.store.git, names):
        raise TransferRefused(LOST)
