"""The commits of a verified export as batches, one session after the other. Nothing is parsed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from fairlead_schema.ids import SessionId
from fairlead_schema.transfer.lines import (
    ExportedCommit,
    ExportItem,
    SessionBegun,
    SessionSealed,
)

BATCH_COMMITS: Final = 500
BATCH_BYTES: Final = 256 * 1024
"""The requests of NATS have at most a megabyte, unless the servers allow more."""


@dataclass(slots=True)
class CommitBatch:
    """Consecutive commits of one session, as the export holds them."""

    session_id: SessionId
    commits: list[bytes] = field(default_factory=list)
    size: int = 0

    def has_room(self, payload: bytes) -> bool:
        """Whether another commit fits."""
        return len(self.commits) < BATCH_COMMITS and self.size + len(payload) <= BATCH_BYTES


def commit_batches(items: Iterable[ExportItem]) -> Iterator[CommitBatch]:
    """All commits of an export."""
    batch = CommitBatch("")
    for item in items:
        match item:
            case SessionBegun(begin=session_id):
                batch = CommitBatch(session_id)
            case ExportedCommit(payload=payload):
                if batch.commits and not batch.has_room(payload):
                    yield batch
                    batch = CommitBatch(batch.session_id)
                batch.commits.append(payload)
                batch.size += len(payload)
            case SessionSealed():
                yield batch
            case _:
                pass
