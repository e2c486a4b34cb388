"""Decodes log entries: the events of a commit, and their stored JSON. Pure."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from fairlead_eventlog.ports import LogEntry
from fairlead_schema.record import NewerCommit, Recorded, RecordError, decode_json, parse

REASON_LENGTH_MAX: Final = 1024

# Postgres stores no NUL in text or jsonb. Readers see the symbol for NUL instead.
_NUL: Final = b"\\u0000"
_NUL_SYMBOL: Final = "\u2400"


class DecodedEntry(NamedTuple):
    """The events of an entry and their stored JSON, or the reason why nobody can read it."""

    entry: LogEntry
    events: tuple[Recorded, ...] = ()
    stored: Sequence[dict[str, Any]] = ()
    reason: str | None = None
    is_newer: bool = False
    """Whether a newer release wrote the entry and can read it."""
    repeats: bool = False
    """Whether an earlier entry of the session is the same commit: it changes nothing."""


def decode_entry(entry: LogEntry) -> DecodedEntry:
    """Decode one entry. Never raises: an unreadable entry carries its reason."""
    payload = entry.payload
    try:
        raw = parse(payload)
        if _NUL in payload:
            raw = _without_nul(raw)
        return DecodedEntry(entry, decode_json(raw).events, raw["events"])
    except (RecordError, ValueError) as error:
        return unreadable_entry(entry, str(error), is_newer=isinstance(error, NewerCommit))


def unreadable_entry(entry: LogEntry, reason: str, *, is_newer: bool = False) -> DecodedEntry:
    """An entry that cannot be applied, with the reason."""
    short = reason.replace("\0", _NUL_SYMBOL)[:REASON_LENGTH_MAX]
    return DecodedEntry(entry, reason=short, is_newer=is_newer)


def _without_nul(value: Any) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case str():
            return value.replace("\0", _NUL_SYMBOL)
        case list():
            return [_without_nul(item) for item in value]
        case dict():
            return {_without_nul(key): _without_nul(item) for key, item in value.items()}
        case _:
            return value
