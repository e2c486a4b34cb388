"""Positions of the log in wakes and nudges, so that their readers know how far to read."""

from typing import Final

POSITION_HEADER: Final = "Fairlead-Position"
"""The header of a nudge that names a position of the log. The body of a wake is the position."""


def encode_position(position: int | None) -> bytes:
    """The body of a wake about a position. An empty body names none."""
    return b"" if position is None else str(position).encode()


def parse_position(body: bytes | str) -> int | None:
    """The position that a body names. Earlier releases left the body empty."""
    return int(body) if body.isdigit() else None
