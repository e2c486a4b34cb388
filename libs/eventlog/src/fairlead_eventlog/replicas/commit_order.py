"""The order of a session's commits: each brings the next events, or repeats an earlier commit exactly."""

from fairlead_eventlog.ports import START, Head, LogEntry, SessionLog, StoredCommit
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_schema.raw_records.raw_commit import RawCommit
from fairlead_schema.record import ENDS_LOG, Commit, brings_news, decode
from fairlead_schema.subjects import Address


class CommitOrder:
    """What one reader has read of a session, and what may come next."""

    def __init__(self, log: SessionLog, at: Address, head: Head) -> None:
        self._log = log
        self._at = at
        self._last: Commit | None = None
        self._last_payload: bytes | None = None
        self._last_ids: frozenset[str] = frozenset()
        self.head = head

    async def accept(self, stored: StoredCommit) -> bool:
        """Whether the next commit of the log brings news. False: it repeats an earlier one exactly.

        Raises SequenceGap, DivergentCommit, ForeignEventId.
        """
        if self._last_payload is not None:
            self._last, self._last_payload = decode(self._last_payload), None
        if await is_repeat(self._log, self._at, stored, seq=self.head.seq, last=self._last):
            self.head = Head(stored.position, self.head.seq)
            return False
        brings_news(stored.commit, seq=self.head.seq, last=self._last)
        self.head, self._last = stored.head, stored.commit
        self._last_ids = frozenset(recorded.id for recorded in stored.commit.events)
        return True

    async def is_news(self, stored: StoredCommit, *, after: int) -> bool:
        """Whether the next commit tells something to a reader who has the events up to `after`.

        A restored session keeps its marker in front. A reader who begins before it does not need it,
        unless nothing stands behind it: then the session is stored now.
        """
        if stored.marker is None or (self.head != START and self.head.seq >= after):
            return stored.marker is not None or stored.head.seq > after
        return await self._log.last_commit_position(self._at) == stored.position

    def accept_next(self, entry: LogEntry, commit: RawCommit) -> bool:
        """Accept a commit that plainly brings the next events. False: only `accept` can judge it."""
        seq, ids = self.head.seq, set[str]()
        for event in commit.events:
            seq += 1
            if event.seq != seq or event.id in ids or event.id in self._last_ids:
                return False
            ids.add(event.id)
        if commit.events[-1].kind in ENDS_LOG:
            return False
        self.head = Head(entry.position, seq)
        self._last_payload, self._last_ids = entry.payload, frozenset(ids)
        return True


async def is_repeat(
    log: SessionLog, at: Address, stored: StoredCommit, *, seq: int, last: Commit | None
) -> bool:
    """Whether a commit after event `seq` repeats `last`, or another commit that the log has before it.

    Only a commit that claims a place before `seq` is looked up.
    """
    if stored.ends_log or stored.commit.events[0].seq > seq:
        return False
    return stored.commit == last or await stands_before(log, at, stored)


async def stands_before(log: SessionLog, at: Address, stored: StoredCommit) -> bool:
    """Whether the log has the same commit at an earlier position. Raises RecordError."""
    head, more = START, True
    while more and head.position < stored.position:
        page = await log.read(at, after=head, reach=stored.position)
        for earlier in page.commits:
            if earlier.commit == stored.commit:
                return earlier.position < stored.position
            head = earlier.head
        more = page.more
    return False


def decode_commit(hint: CommitHint) -> StoredCommit:
    """The commit of its bytes. Raises RecordError."""
    return StoredCommit(hint.position, decode(hint.payload), len(hint.payload))
