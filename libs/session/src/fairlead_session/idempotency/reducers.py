"""Folds commands with an idempotency key: the session remembers the answers of the last ones."""

from collections.abc import Mapping
from itertools import islice
from typing import Final

from fairlead_schema.events import CommandAnswered
from fairlead_schema.record import Recorded
from fairlead_session.fold import Reducers
from fairlead_session.state.answers import InterruptOutcome, KeptAnswer
from fairlead_session.state.session import Session

ANSWERS_MAX: Final = 64
"""How many answers a session remembers. A caller repeats a command soon, or never."""


def _remember(
    session: Session, event: CommandAnswered, recorded: Recorded
) -> Mapping[str, KeptAnswer]:
    """The events of the command precede this one, so the session is as the command left it."""
    request = session.revert.requested or session.relocation.requested
    answer = KeptAnswer(
        body=event.body,
        seq=recorded.seq,
        outcome=_outcome(session, event),
        request=None if request is None else request.seq,
    )
    older = {key: kept for key, kept in session.answers.items() if key != event.key}
    dropped = max(0, len(older) + 1 - ANSWERS_MAX)
    return {**dict(islice(older.items(), dropped, None)), event.key: answer}


def _outcome(session: Session, event: CommandAnswered) -> InterruptOutcome:
    if session.execution.interrupted:
        return "stopping"
    return "dropped" if event.interrupts is True else "idle"


REDUCERS: Final[Reducers[Mapping[str, KeptAnswer]]] = {CommandAnswered: _remember}
