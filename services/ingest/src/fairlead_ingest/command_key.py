"""The idempotency key of the command that runs now. Its commit remembers it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from fairlead_schema.errors import Conflict
from fairlead_schema.subjects import KEY_HEADER, Address
from fairlead_session.idempotency.keys import (
    CommandKey,
    KeyUsedOtherwise,
    find_answer,
)
from fairlead_session.state.answers import KeptAnswer
from fairlead_session.state.session import Session

_RUNNING: Final[ContextVar[tuple[Address, CommandKey] | None]] = ContextVar(
    "fairlead_command_key", default=None
)


class CommandRepeated(Exception):
    """The command was decided before. Its first answer counts."""

    def __init__(self, answer: KeptAnswer, session: Session) -> None:
        super().__init__(f"answered at {answer.seq}")
        self.answer = answer
        self.session = session


@contextmanager
def command_under_key(at: Address, command: CommandKey) -> Iterator[None]:
    """Let the next commit of this session remember the command."""
    token = _RUNNING.set((at, command))
    try:
        yield
    finally:
        _RUNNING.reset(token)


def running_key(at: Address) -> CommandKey | None:
    """The key of the command that runs now on a session."""
    running = _RUNNING.get()
    return running[1] if running is not None and running[0] == at else None


def check_new(session: Session, command: CommandKey) -> None:
    """Refuse to decide a command twice. Raises CommandRepeated, or Conflict for another command."""
    found = find_answer(session, command)
    if isinstance(found, KeyUsedOtherwise):
        text = f"The {KEY_HEADER} belongs to another request: choose a new key"
        raise Conflict(text, session.id)
    if found is not None:
        raise CommandRepeated(found, session)
