"""The last commits of one worker: they bring what its requests assume up to date, without a read."""

from collections import OrderedDict, deque
from typing import Final

from fairlead_eventlog.ports import StoredCommit
from fairlead_eventlog.session_cache import SessionCache
from fairlead_eventlog.session_writer import AssumedState
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_session.state.session import Session

COMMITS_MAX: Final = 32


class OwnCommits:
    """What this worker wrote to each session, the newest last.

    A commit was written behind the head that its decision assumed. So commits whose seqs follow each
    other are all that the log got in between, and whoever wrote since makes the next append fail.
    """

    def __init__(self, cache: SessionCache[Session], *, sessions_max: int) -> None:
        self._cache = cache
        self._sessions_max = sessions_max
        self._commits: OrderedDict[Address, deque[StoredCommit]] = OrderedDict()

    def add(self, at: Address, after: AssumedState[Session]) -> None:
        """Note the last commit of a session, if it is known."""
        last, position = after.versioned.last, after.head.position
        if last is None:
            return
        commits = self._commits.setdefault(at, deque(maxlen=COMMITS_MAX))
        if not commits or commits[-1].position < position:
            commits.append(StoredCommit(position, last))
        self._commits.move_to_end(at)
        if len(self._commits) > self._sessions_max:
            self._commits.popitem(last=False)

    def apply(self, at: Address, assumed: AssumedState[Session]) -> AssumedState[Session]:
        """An assumed state with the own commits that follow it; the state itself without any."""
        known = assumed.versioned
        for stored in self._commits.get(at, ()):
            if stored.commit.events[0].seq != known.head.seq + 1:
                continue
            try:
                known = self._cache.fold(known, stored)
            except RecordError:
                return assumed
        return assumed if known is assumed.versioned else AssumedState(known, assumed.complete)

    def clear(self) -> None:
        """Forget everything: the log was restored from a backup."""
        self._commits.clear()
