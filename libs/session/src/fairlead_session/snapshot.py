"""A session to bytes and back. A snapshot is a cache: what cannot be read is folded again."""

from typing import Final

from pydantic import TypeAdapter, ValidationError

from fairlead_session.state import Frozen, Session

_FROZEN: Final = TypeAdapter(Frozen)


def freeze(session: Session) -> bytes:
    """The bytes of a snapshot."""
    return _FROZEN.dump_json(Frozen(session))


def thaw(payload: bytes) -> Session | None:
    """The session of a snapshot, or None when another release wrote it."""
    try:
        return _FROZEN.validate_json(payload).session
    except ValidationError:
        return None
