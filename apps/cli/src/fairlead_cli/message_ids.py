"""Binds callers' message ids to the sessions that admitted them, from the log alone (D8)."""

import asyncio
from typing import Final, NamedTuple

from fairlead_cli import commits
from fairlead_eventlog.connection import EventLog
from fairlead_schema.events import PromptAdmitted, ShellRequested
from fairlead_schema.ids import MessageId, SessionId, is_minted
from fairlead_schema.record import RecordError, decode
from fairlead_schema.subjects import Address

AT_ONCE: Final = 64
_INPUTS: Final = (PromptAdmitted, ShellRequested)
_TYPES: Final = tuple(f'"{kind.type}"'.encode() for kind in _INPUTS)


class UsedTwice(NamedTuple):
    """A message id that two sessions admitted. It stays bound to one of them."""

    message_id: MessageId
    session_id: SessionId
    bound_to: SessionId


class RestoredIds(NamedTuple):
    """How many ids of callers the log has, and which of them are used twice."""

    found: int
    used_twice: tuple[UsedTwice, ...]


async def restore_message_ids(eventlog: EventLog) -> RestoredIds:
    """Bind every caller's message id of the log that is not bound. Bound ids stay as they are."""
    found, used_twice = 0, list[UsedTwice]()
    waiting: list[tuple[Address, MessageId]] = []
    async for commit in commits.read_all(eventlog):
        waiting += [(commit.at, id_) for id_ in _callers_ids(commit.payload)]
        if len(waiting) >= AT_ONCE:
            found += len(waiting)
            used_twice += await _bind(eventlog, waiting)
            waiting = []
    used_twice += await _bind(eventlog, waiting)
    return RestoredIds(found + len(waiting), tuple(used_twice))


async def _bind(eventlog: EventLog, wanted: list[tuple[Address, MessageId]]) -> list[UsedTwice]:
    bound = await asyncio.gather(
        *(eventlog.message_ids.bind(at.tenant, id_, at.session_id) for at, id_ in wanted)
    )
    return [
        UsedTwice(id_, at.session_id, owner)
        for (at, id_), owner in zip(wanted, bound, strict=True)
        if owner != at.session_id
    ]


def _callers_ids(payload: bytes) -> list[MessageId]:
    """The ids of callers that a commit admits. A minted id needs no register."""
    if not any(type_ in payload for type_ in _TYPES):
        return []
    try:
        events = [recorded.event for recorded in decode(payload).events]
    except RecordError:
        return []  # The release that can read the commit binds its ids.
    admitted = (event.message_id for event in events if isinstance(event, _INPUTS))
    return [id_ for id_ in admitted if not is_minted(id_)]
