"""Appends a commit patiently: the same commit at the same place, until its outcome is known."""

from time import monotonic
from typing import Final

from fairlead_eventlog.condition.metrics import APPEND_CONFLICTS, APPEND_SECONDS
from fairlead_eventlog.errors import AppendConflict, LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    WRONG_LAST_SEQUENCE,
    NatsLink,
    NoAnswer,
    ServerRefusal,
    stream_error,
)
from fairlead_eventlog.ports import Head, SessionLog, StoredCommit
from fairlead_eventlog.replicas.patience import Patience
from fairlead_eventlog.streams import log_stream
from fairlead_schema import subjects
from fairlead_schema.record import Commit, RecordError
from fairlead_schema.subjects import Address

# The election of a leader takes up to ten seconds.
PATIENCE_S: Final = 15.0
# A server that has just lost or won an election says so. The next leader takes the same commit.
_TEMPORARY: Final = frozenset({10008, 10009})
# A dead leader never answers, so the first tries wait a shorter time than the later ones.
_ANSWER_S: Final = 2.0


class PatientAppend:
    """Stores commits, each at most once: the log takes one only directly after its predecessor."""

    def __init__(self, link: NatsLink, log: SessionLog, patience_s: float) -> None:
        self._link = link
        self._log = log
        self._patience_s = patience_s

    async def append(
        self, at: Address, commit: Commit, payload: bytes, *, after: Head
    ) -> StoredCommit:
        """Store a commit directly after a head. Raises AppendConflict and LogUnavailable."""
        patience, answer_s, began = Patience(self._patience_s), _ANSWER_S, monotonic()
        while True:
            try:
                stored = await self._try(at, commit, payload, after, answer_s)
            except ServerRefusal as refusal:
                # A store that is full, for example, does not change its mind within seconds.
                raise stream_error(refusal, log_stream(subjects.shard(at.session_id))) from refusal
            except (NoAnswer, NoResponders, LogUnavailable) as error:
                # The outcome is unknown. The same commit at the same place is safe to repeat.
                if not await patience.pause():
                    raise LogUnavailable(f"no acknowledgement for {commit.id}: {error}") from error
                answer_s *= 2
            except AppendConflict:
                APPEND_CONFLICTS.inc()
                raise
            else:
                APPEND_SECONDS.observe(monotonic() - began)
                return stored

    async def _try(
        self, at: Address, commit: Commit, payload: bytes, after: Head, answer_s: float
    ) -> StoredCommit:
        headers, timeout_s = {EXPECTED_LAST: str(after.position)}, self._link.timeout_s
        try:
            position = await self._link.store(
                subjects.log(at), payload, headers=headers, timeout_s=min(answer_s, timeout_s)
            )
        except ServerRefusal as refusal:
            if refusal.code in WRONG_LAST_SEQUENCE:
                return await self._find_successor(at, commit, after)
            if refusal.code in _TEMPORARY:
                raise LogUnavailable(str(refusal)) from refusal
            raise
        return StoredCommit(position, commit, len(payload))

    async def _find_successor(self, at: Address, commit: Commit, after: Head) -> StoredCommit:
        """Tell a lost race from our own commit whose acknowledgement was lost.

        Our commit can only stand directly after `after`, so the commit there decides. Raises
        AppendConflict, and LogUnavailable if nothing stands there yet.
        """
        try:
            page = await self._log.read(at, after=after, limit=1)
            if not page.commits:
                await self._check_moved(at, after)
                page = await self._log.read(at, after=after, limit=1, reach=after.position + 1)
        except RecordError:
            # We can read our own commits: this one is another writer's.
            raise AppendConflict(at, expected=after.position, actual=None) from None
        successor = page.commits[0] if page.commits else None
        if successor is not None and _is_ours(successor.commit, commit):
            return successor
        actual = None if successor is None else successor.position
        raise AppendConflict(at, expected=after.position, actual=actual)

    async def _check_moved(self, at: Address, after: Head) -> None:
        """Raise unless the leader has a commit after `after`, which the replica that we read lacks."""
        last = await self._log.last_commit_position(at)
        if last < after.position:
            raise AppendConflict(at, expected=after.position, actual=last)  # The log was erased.
        if last == after.position:
            # The commit that took our place is not stored yet. An election may still drop it.
            raise LogUnavailable(f"a commit of {at.session_id} is on its way")


def _is_ours(stored: Commit, commit: Commit) -> bool:
    """Whether a stored commit is this one. Its events have their ids from this writer alone."""
    return stored.id == commit.id or stored.events[0].id == commit.events[0].id
