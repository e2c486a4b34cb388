"""Ownership: who may drain a session. The log fences; liveness only says when it is worth trying."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fairlead_schema.events import ExecutionClaimed, ExecutionReleased, SessionEvent
from fairlead_schema.events.execution import RestReason
from fairlead_schema.ids import RunnerId
from fairlead_session.execution.rest import rest_rule
from fairlead_session.state.session import Session

ProcessLife: TypeAlias = Literal["alive", "gone", "silent"]


@dataclass(frozen=True, slots=True)
class OwnedByOther:
    """A live runner owns the session. Its release overlooks nothing, so leave the session alone."""

    runner: RunnerId


def claim(
    session: Session, runner: RunnerId, owner_life: ProcessLife | None
) -> tuple[SessionEvent, ...] | OwnedByOther:
    """Claim the session, unless another runner owns it that is known to be alive.

    The claim holds until somebody claims the session again.
    """
    owner = session.execution.owner
    if owner is not None and owner.runner != runner and owner_life == "alive":
        return OwnedByOther(owner.runner)
    return (ExecutionClaimed(generation=session.execution.generation + 1, runner=runner),)


def owns(session: Session, runner: RunnerId, generation: int) -> bool:
    """Whether this runner's claim is still the last one."""
    owner = session.execution.owner
    return owner is not None and (owner.runner, owner.generation) == (runner, generation)


def needs_release(session: Session, reason: RestReason) -> bool:
    """Whether a session as the log has it needs a release before it rests for this reason.

    Without an owner and an attempt in the log nothing has begun. A rest that says nothing new then
    leaves the log as it is. But only a release ends an interrupt.
    """
    execution = session.execution
    if execution.owner is not None or session.turn.attempt is not None or execution.interrupted:
        return True
    if execution.shell_requested:
        return True  # A command has ended while nobody owned the session: the request ends here.
    return not (rest_rule(reason).finished or reason == execution.rested)


def release(
    session: Session,
    reason: RestReason,
    *,
    detail: str | None = None,
    wake_at: int | None = None,
) -> ExecutionReleased:
    """The event that ends the current ownership; a timer wakes the session again at `wake_at`."""
    owner = session.execution.owner
    assert owner is not None, "only an owned session is released"
    return ExecutionReleased(
        generation=owner.generation, reason=reason, detail=detail, wake_at=wake_at
    )
