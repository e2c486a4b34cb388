"""What a session does next: one pure function over a closed union of moves."""

from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.events.execution import RestReason
from fairlead_session.promotion import STEERS_MAX, eligible
from fairlead_session.state import Attempt, Input, Session


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings that bound a drain."""

    turns_max: int = 25
    recoveries_max: int = 3
    steers_max: int = STEERS_MAX


@dataclass(frozen=True, slots=True)
class SettleInterrupted:
    """A dead owner's attempt is in the log without its outcome: decide what it meant."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class InitialiseContext:
    """No epoch yet: observe every source before anything is promoted."""


@dataclass(frozen=True, slots=True)
class TakeTurn:
    """At a safe boundary: promote these inputs, reconcile context, call the provider."""

    inputs: tuple[Input, ...]
    step: int


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing continues: release the session."""

    reason: RestReason


Move: TypeAlias = SettleInterrupted | InitialiseContext | TakeTurn | Rest


def next_move(session: Session, limits: Limits = Limits()) -> Move:  # noqa: B008
    """Decide from the log alone. Total: every state has a move, and a quiet one rests."""
    if session.interrupted:
        return Rest("interrupted")
    if session.attempt is not None:
        return SettleInterrupted(session.attempt)
    inputs = eligible(session, steers_max=limits.steers_max)
    if not inputs and not session.owed:
        return Rest("idle")
    if session.recoveries > limits.recoveries_max and not inputs:
        return Rest("held")
    if session.epoch is None:
        return InitialiseContext()
    return TakeTurn(inputs, 1 if inputs else session.step + 1)


def moving(session: Session) -> bool:
    """Whether there is work that somebody was asked to do and nobody has rested from."""
    work = bool(session.inbox) or session.owed or session.attempt is not None
    return work and session.stirring
