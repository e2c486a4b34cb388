"""A move that takes changes along: what was asked for, the transfer that began, and how it ended."""

from dataclasses import dataclass

from fairlead_schema.location import LocationRef


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """A request that is not done yet, with the sequence of its event."""

    seq: int
    location: LocationRef


@dataclass(frozen=True, slots=True)
class Transfer:
    """The location before the move, and the trees of files at both ends."""

    source: LocationRef
    before: str
    target: str
    changed: str
    kept: str
    subdirectory: str | None = None


@dataclass(frozen=True, slots=True)
class EndedMove:
    """How the request with this sequence ended: why nothing moved, or why changes stay at the source."""

    seq: int
    failed: str | None = None
    undiscarded: str | None = None


@dataclass(frozen=True)
class Relocation:
    """The open request and its transfer. After the move the changes at the source are discarded."""

    requested: MoveRequest | None = None
    begun: Transfer | None = None
    moved: bool = False
    ended: EndedMove | None = None
