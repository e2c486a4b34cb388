"""Snapshots: a session as bytes and back, and how caches read a session.

A snapshot is a cache. If another fold wrote it, the session is folded again from the log.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Final

from pydantic import TypeAdapter, ValidationError

from fairlead_schema.events import ExecutionClaimed
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.session import Session

FOLD_VERSION: Final = 21
"""Counts the changes of what events fold into. `tests/replay/fold_versions.txt` has its digests."""

GROWTH_PART: Final = 8
"""A long session has a new snapshot when it has grown by this part of itself."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as a snapshot stores it: with the shape of sessions and the version of the fold.

    The first release with snapshots wrote no version.
    """

    session: Session
    shape: str
    fold: int = 1


@dataclass(frozen=True, slots=True)
class SessionFold:
    """The fold of a session, as a cache of folded sessions needs it."""

    initial: Callable[[Address], Session]
    evolve: Callable[[Session, Recorded], Session]
    freeze: Callable[[Session], bytes]
    thaw: Callable[[bytes], Session | None]


_STORED: Final = TypeAdapter(StoredSession)


def freeze(session: Session) -> bytes:
    """The bytes of a snapshot."""
    return _STORED.dump_json(StoredSession(session, _shape(), FOLD_VERSION))


def thaw(payload: bytes) -> Session | None:
    """The session of a snapshot, or None if sessions had another shape or were folded otherwise."""
    try:
        stored = _STORED.validate_json(payload)
    except ValidationError:
        return None
    current = (_shape(), FOLD_VERSION)
    return stored.session if (stored.shape, stored.fold) == current else None


def is_snapshot_due(*, opened: int, seq: int, every: int) -> bool:
    """Whether a drain that went from seq `opened` to `seq` passed a place for a snapshot.

    The places are `every` events apart, and later an eighth of the session: a snapshot costs as much as
    the session is long, so that an event costs the same in every session.
    """
    place = every
    while place <= opened:
        place += max(every, place // GROWTH_PART)
    return place <= seq


@cache
def _shape() -> str:
    """A hash of the fields of a session.

    A field that was added since would be read as its default, as if its events had not happened.
    """
    schema = TypeAdapter(Session).json_schema()
    return sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()[:16]


def evolve_in_order(session: Session, recorded: Recorded) -> Session:
    """Apply one event of a log, whose claims have growing generations.

    A claim of an old generation is no runner's: whoever claims has read the last claim.
    """
    event = recorded.event
    if type(event) is ExecutionClaimed:
        generation, last = event.generation, session.execution.generation
        assert generation > last, f"claim {generation} after {last}"
    return evolve(session, recorded)


SESSION_FOLD: Final = SessionFold(
    lambda at: Session(id=at.session_id), evolve_in_order, freeze, thaw
)
