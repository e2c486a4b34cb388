"""What is known of the whole log: the level of its format, and its incarnation (ADR 0029, ADR 0030)."""

from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import NamedTuple, Protocol

from fairlead_eventlog.errors import NotFinalised
from fairlead_schema.record import LEVEL_FIRST, Commit, Draft


class Incarnation(NamedTuple):
    """One life of the log. A log that was restored from a backup begins another one."""

    id: str
    previous: str | None = None
    """The incarnation before this one."""
    common: tuple[int, ...] = ()
    """For each shard the last position that both incarnations have; empty if nobody knows."""

    def common_position(self, shard: int, *, known: str | None) -> int:
        """Up to where a reader of the incarnation `known` need not read the shard again."""
        return self.common[shard] if self.common and known == self.previous else 0


class LogStatus(NamedTuple):
    """What was last read of the log's status. Before the first read it is the safest value."""

    level: int = LEVEL_FIRST
    """The level that the operator finalised. Writers write no event of a higher level."""
    incarnation: Incarnation | None = None


class LogStatusRegister(Protocol):
    """The status of the log. Each process reads it again every few seconds."""

    @property
    def current(self) -> LogStatus:
        """The status as this process last read it."""

    async def read(self) -> LogStatus:
        """The status as it is now. Raises LogUnavailable."""

    async def finalise(self, level: int) -> None:
        """Allow the events of a level. A lower level than the recorded one changes nothing."""

    async def begin_incarnation(
        self, common: Sequence[int] = (), *, after: Incarnation | None
    ) -> Incarnation:
        """Begin another incarnation after the one that the caller knows.

        If another process was first, the answer is the incarnation that it began.
        """

    def on_restore(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Run a callback when the incarnation has changed; the returned function removes it."""


def next_incarnation(after: Incarnation | None, common: Sequence[int]) -> Incarnation:
    """A new incarnation that follows another one."""
    return Incarnation(token_hex(4), None if after is None else after.id, tuple(common))


def require_finalised(drafts: Sequence[Draft], level: int) -> None:
    """Raise NotFinalised if an older release could not read one of these events."""
    for draft in drafts:
        needed = draft.event.needed_level
        if needed > level:
            raise NotFinalised(draft.event.type, needed=needed, level=level)


def require_level(commit: Commit, level: int) -> None:
    """Raise NotFinalised if an older release could not read a commit of an import."""
    if commit.level > level:
        raise NotFinalised("an import", needed=commit.level, level=level)
