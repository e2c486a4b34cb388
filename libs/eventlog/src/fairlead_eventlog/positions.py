"""Positions of the log in the bodies of wakes and the headers of nudges."""

from typing import Final

POSITION_HEADER: Final = "Fairlead-Position"


def encode_position(position: int | None) -> bytes:
    """The body of a message about a position. An empty body names none."""
    return b"" if position is None else str(position).encode()


def parse_position(body: bytes | str) -> int | None:
    """The position that a body names. Releases before this one left the body empty."""
    return int(body) if body.isdigit() else None
