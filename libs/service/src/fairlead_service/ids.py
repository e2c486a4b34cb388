"""Makes ids: they sort by time of creation and are unique by randomness. Readers do not parse them."""

import os
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
    ScheduleId,
    SessionId,
    WebhookId,
    WorkerId,
    seal,
)

_LOW_48: Final = (1 << 48) - 1

_LETTERS: Final = bytes(ord(BASE62[byte % 62]) for byte in range(256))
_NOISE_LENGTH: Final = 10
_IDS_AT_ONCE: Final = 64
_NOISES: Final[list[str]] = []
# A copy of this process must not mint the ids of its parent.
os.register_at_fork(after_in_child=_NOISES.clear)


def now_ms() -> int:
    """The wall clock in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def _timestamp() -> int:
    """Milliseconds in steps of 1/4096. Two ids of one process hardly ever share a step, so ids sort."""
    return (time.time_ns() * 4096 // 1_000_000) & _LOW_48


def _noise() -> str:
    """Random letters. The kernel is asked once for many ids; any thread may take the next."""
    while True:
        try:
            return _NOISES.pop()
        except IndexError:
            letters = os.urandom(_NOISE_LENGTH * _IDS_AT_ONCE).translate(_LETTERS).decode()
            starts = range(0, len(letters), _NOISE_LENGTH)
            _NOISES.extend(letters[start : start + _NOISE_LENGTH] for start in starts)


def _mint(prefix: str, timestamp: int) -> str:
    unsealed = f"{prefix}{timestamp:012x}{_noise()}"
    return unsealed + seal(unsealed)


def session_id() -> SessionId:
    """A session id. Newer sessions sort first."""
    return _mint("ses_", _timestamp() ^ _LOW_48)


def message_id() -> MessageId:
    return _mint("msg_", _timestamp())


def event_id() -> EventId:
    return _mint("evt_", _timestamp())


def commit_id() -> CommitId:
    return _mint("cmt_", _timestamp())


def attempt_id() -> AttemptId:
    return _mint("att_", _timestamp())


def permission_id() -> PermissionId:
    return _mint("per_", _timestamp())


def question_id() -> QuestionId:
    return _mint("que_", _timestamp())


def runner_id() -> RunnerId:
    return _mint("run_", _timestamp())


def output_id() -> OutputId:
    return _mint("out_", _timestamp())


def worker_id() -> WorkerId:
    return _mint("wkr_", _timestamp())


def webhook_id() -> WebhookId:
    return _mint("whk_", _timestamp())


def schedule_id() -> ScheduleId:
    return _mint("sch_", _timestamp())
