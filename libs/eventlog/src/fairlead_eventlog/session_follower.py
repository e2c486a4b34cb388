"""Keeps warm sessions up to date by the broadcasts of their commits, so that a writer need not read first."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, TypeVar

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.replicas.commit_hint import CommitBroadcasts, CommitHint
from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_schema.subjects import Address

SESSIONS_MAX: Final = 1024
BYTES_MAX: Final = 16 * 1024 * 1024
# A session that others write so much to, without a command here, is cheaper to read when one comes.
WAITING_MAX: Final = 64

State = TypeVar("State")


class _Followed:
    """The broadcasts of one session that nobody has needed yet."""

    def __init__(self) -> None:
        self.waiting: list[CommitHint] = []
        self.bytes = 0
        self.lossy = False
        self.stop: Callable[[], None] | None = None

    def take_all(self) -> list[CommitHint]:
        waiting, self.waiting, self.bytes = self.waiting, [], 0
        return waiting


class SessionFollower(Generic[State]):
    """Follows the sessions that commands came for last. Broadcasts wait as bytes until the next command.

    What it knows may be old, because a broadcast may be late or lost. So it is for those who write: the
    log refuses what they decide from an old state.
    """

    def __init__(
        self,
        broadcasts: CommitBroadcasts,
        cache: SessionCache[State],
        *,
        sessions_max: int = SESSIONS_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._broadcasts = broadcasts
        self._cache = cache
        self._sessions_max = sessions_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._followed: OrderedDict[Address, _Followed] = OrderedDict()

    async def follow(self, at: Address) -> None:
        """Listen to a session that this process has just written to, unless the log is away.

        Whoever follows before a wake leaves misses none of the commits that the wake leads to.
        """
        if at in self._followed or not self._sessions_max:
            return
        followed = self._followed[at] = _Followed()
        while len(self._followed) > self._sessions_max:
            self._drop_oldest()
        try:
            followed.stop = await self._broadcasts.listen(at, partial(self._receive, at, followed))
        except LogUnavailable:
            self._drop(at, followed)
            return
        if self._followed.get(at) is not followed:
            followed.stop()  # Others took its place meanwhile.

    def follows(self, at: Address) -> bool:
        """Whether the broadcasts of a session come here."""
        return at in self._followed

    def assume(self, at: Address) -> Versioned[State] | None:
        """The session to write from, as its broadcasts tell, or None: then the caller reads it."""
        known = self.peek(at)
        if at in self._followed:
            self._followed[at].lossy = False
        return known

    def peek(self, at: Address) -> Versioned[State] | None:
        """The session as its broadcasts tell; None if it is not followed, or if some are missing."""
        followed = self._followed.get(at)
        if followed is None:
            return None
        self._followed.move_to_end(at)
        self._bytes -= followed.bytes
        waiting, known = followed.take_all(), self._cache.peek(at)
        for commit in waiting:
            # What this process wrote or read comes as a broadcast as well.
            if known is not None and commit.position > known.head.position:
                known = self._cache.fold_next(at, commit)
                followed.lossy |= known is None
        return None if followed.lossy else known

    def forget_all(self) -> None:
        """Follow nothing any more: the log was restored from a backup."""
        while self._followed:
            self._drop_oldest()

    def _receive(self, at: Address, followed: _Followed, commit: CommitHint | None) -> None:
        if self._followed.get(at) is not followed:
            return
        if commit is None:
            followed.lossy = True
            return
        followed.waiting.append(commit)
        followed.bytes += len(commit.payload)
        self._bytes += len(commit.payload)
        if len(followed.waiting) > WAITING_MAX:
            self._drop(at, followed)
        while self._bytes > self._bytes_max:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        at, followed = next(iter(self._followed.items()))
        self._drop(at, followed)

    def _drop(self, at: Address, followed: _Followed) -> None:
        if self._followed.get(at) is not followed:
            return
        del self._followed[at]
        self._bytes -= followed.bytes
        if followed.stop is not None:
            followed.stop()
