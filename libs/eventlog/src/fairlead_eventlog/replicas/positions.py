"""Positions of the log in wakes and nudges, so that their readers know how far to read.

Both may carry the commit at the position, in the same form, within the same limit.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final

from fairlead_eventlog.replicas.commit_hint import CommitHint

POSITION_HEADER: Final = "Fairlead-Position"
"""The header of a nudge that names a position of the log. A wake names it in its body."""
COMMIT_HEADER: Final = "Fairlead-Commit"
"""The header of a nudge that carries a commit. It has the body of a wake with that commit."""
CARRIED_BYTES_MAX: Final = 4096
"""Nothing carries a larger commit: wakes and nudges are hints, and the log has the commit anyway."""


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


def nudge_headers(position: int | None, commit: CommitHint | None = None) -> dict[str, str]:
    """The headers of a nudge about a position. Runners of earlier releases look at the position only."""
    body = encode_wake(position, commit)
    named = parse_position(body)
    headers = {} if named is None else {POSITION_HEADER: str(named)}
    if parse_carried_commit(body) is not None:
        headers[COMMIT_HEADER] = b64encode(body).decode()
    return headers


def parse_nudge_headers(headers: Mapping[str, str]) -> tuple[int | None, CommitHint | None]:
    """The position that a nudge names, and the commit that it carries."""
    position = parse_position(headers.get(POSITION_HEADER, ""))
    try:
        body = b64decode(headers.get(COMMIT_HEADER, ""), validate=True)
    except ValueError:
        return position, None
    return position, parse_carried_commit(body)
