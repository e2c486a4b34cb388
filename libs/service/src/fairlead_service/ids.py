"""Minting ids: sortable by creation, unique by randomness. Readers treat them as opaque."""

import secrets
import time
from typing import Final

from fairlead_schema.ids import (
    BASE62,
    AttemptId,
    CommitId,
    EventId,
    MessageId,
    OutputId,
    PermissionId,
    QuestionId,
    RunnerId,
    SessionId,
    WorkerId,
    seal,
)

_LOW_48: Final = (1 << 48) - 1

_LETTERS: Final = bytes(ord(BASE62[byte % 62]) for byte in range(256))


def now_ms() -> int:
    """The wall clock in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def _sortable() -> int:
    """Milliseconds in steps of 1/4096: finer than ids are minted, so that they sort."""
    return (time.time_ns() * 4096 // 1_000_000) & _LOW_48


def _mint(prefix: str, sortable: int) -> str:
    noise = secrets.token_bytes(10).translate(_LETTERS).decode()
    unsealed = f"{prefix}{sortable:012x}{noise}"
    return unsealed + seal(unsealed)


def session_id() -> SessionId:
    """A session id; newer ones sort first."""
    return _mint("ses_", _sortable() ^ _LOW_48)


def message_id() -> MessageId:
    return _mint("msg_", _sortable())


def event_id() -> EventId:
    return _mint("evt_", _sortable())


def commit_id() -> CommitId:
    return _mint("cmt_", _sortable())


def attempt_id() -> AttemptId:
    return _mint("att_", _sortable())


def permission_id() -> PermissionId:
    return _mint("per_", _sortable())


def question_id() -> QuestionId:
    return _mint("que_", _sortable())


def runner_id() -> RunnerId:
    return _mint("run_", _sortable())


def output_id() -> OutputId:
    return _mint("out_", _sortable())


def worker_id() -> WorkerId:
    return _mint("wkr_", _sortable())
