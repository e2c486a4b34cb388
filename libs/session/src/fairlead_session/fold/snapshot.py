"""A session to bytes and back. A snapshot is a cache: what another release wrote is folded again."""

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Final

from pydantic import TypeAdapter, ValidationError

from fairlead_session.state import Session


@dataclass(frozen=True, slots=True)
class Frozen:
    """A session as a snapshot stores it, with the shape that its release gave to sessions."""

    session: Session
    shape: str


_FROZEN: Final = TypeAdapter(Frozen)


def freeze(session: Session) -> bytes:
    """The bytes of a snapshot."""
    return _FROZEN.dump_json(Frozen(session, _shape()))


def thaw(payload: bytes) -> Session | None:
    """The session of a snapshot, or None when another release wrote it."""
    try:
        frozen = _FROZEN.validate_json(payload)
    except ValidationError:
        return None
    return frozen.session if frozen.shape == _shape() else None


@cache
def _shape() -> str:
    """A name for what a session consists of now.

    A field that was added since would be read as its default: as if its events had not happened.
    """
    schema = TypeAdapter(Session).json_schema()
    return sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()[:16]
