"""Minting ids: sortable by creation, unique by randomness. Readers treat them as opaque."""

import secrets
import string
import time
from itertools import count
from typing import Final

from fairlead_schema.ids import (
    AttemptId,
    CommitId,
    EventId,
    MessageId,
    RunnerId,
    SessionId,
    WorkerId,
)

_BASE62: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_LOW_48: Final = (1 << 48) - 1

_ticks = count()


def now_ms() -> int:
    """The wall clock in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def _sortable() -> int:
    return (now_ms() * 4096 + next(_ticks) % 4096) & _LOW_48


def _tail() -> str:
    return "".join(_BASE62[byte % 62] for byte in secrets.token_bytes(14))


def session_id() -> SessionId:
    """A session id; newer ones sort first."""
    return f"ses_{_sortable() ^ _LOW_48:012x}{_tail()}"


def message_id() -> MessageId:
    return f"msg_{_sortable():012x}{_tail()}"


def event_id() -> EventId:
    return f"evt_{_sortable():012x}{_tail()}"


def commit_id() -> CommitId:
    return f"cmt_{_sortable():012x}{_tail()}"


def attempt_id() -> AttemptId:
    return f"att_{_sortable():012x}{_tail()}"


def runner_id() -> RunnerId:
    return f"run_{_sortable():012x}{_tail()}"


def worker_id() -> WorkerId:
    return f"wkr_{_sortable():012x}{_tail()}"
