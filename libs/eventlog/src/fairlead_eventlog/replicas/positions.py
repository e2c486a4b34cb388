"""Positions of the log in wakes and nudges, so that their readers know how far to read."""

from typing import Final

from fairlead_eventlog.replicas.commit_hint import CommitHint

POSITION_HEADER: Final = "Fairlead-Position"
"""The header of a nudge that names a position of the log. A wake names it in its body."""
CARRIED_BYTES_MAX: Final = 4096
"""A wake carries no larger commit: the queue is for hints, and the log has the commit anyway."""


def encode_wake(position: int | None, commit: CommitHint | None = None) -> bytes:
    """The body of a wake about a position. An empty body names none.

    A commit follows its position and the position before it. Earlier releases take such a body for
    one without a position: they read up to the leader's end.
    """
    if commit is not None and len(commit.payload) <= CARRIED_BYTES_MAX:
        return b"%d %d %b" % commit
    known = position if commit is None else commit.position
    return b"" if known is None else b"%d" % known


def parse_position(body: bytes | str) -> int | None:
    """The position that a wake or a nudge names. Earlier releases left the body empty."""
    first = body.split(maxsplit=1)[:1]
    return int(first[0]) if first and first[0].isdigit() else None


def parse_carried_commit(body: bytes) -> CommitHint | None:
    """The commit that a wake carries, if it carries one."""
    position, _, rest = body.partition(b" ")
    previous, _, payload = rest.partition(b" ")
    if not (position.isdigit() and previous.isdigit() and payload):
        return None
    return CommitHint(int(position), int(previous), payload)
