"""Ids of tasks. A task is found again by its id alone, so that nobody has to store tasks. Pure."""

import re
from typing import Final, NamedTuple

from fairlead_schema.ids import MessageId, SessionId

_TASK_ID: Final = re.compile(r"(ses[A-Za-z0-9_-]{1,120})\.(msg_[A-Za-z0-9_-]{1,120})\.(\d{1,16})")


class TaskRef(NamedTuple):
    """The prompt that a task stands for, and where its admission is in the log."""

    session_id: SessionId
    message_id: MessageId
    admitted_seq: int

    @property
    def task_id(self) -> str:
        return f"{self.session_id}.{self.message_id}.{self.admitted_seq}"


def parse_task_id(task_id: str) -> TaskRef | None:
    """The prompt of a task; None if no task of ours has such an id."""
    found = _TASK_ID.fullmatch(task_id)
    return None if found is None else TaskRef(found[1], found[2], int(found[3]))
