"""Commits that others pass on, besides the log: hints for whoever has all that comes before."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from fairlead_schema.subjects import Address


class CommitHint(NamedTuple):
    """A commit that somebody passes on: its bytes, its position and that of the session's commit before it."""

    position: int
    previous: int
    payload: bytes


class CommitBroadcasts(Protocol):
    """Announces new commits to whoever has use for them early. Any announcement may be lost or late."""

    async def listen(
        self, at: Address, receive: Callable[[CommitHint | None], None]
    ) -> Callable[[], None]:
        """Pass on each new commit of a session until the returned function is called.

        None says that some were lost. Others are lost without a sign: `previous` of the next one
        shows it. Raises LogUnavailable.
        """
