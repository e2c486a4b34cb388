"""The state of a session in a list, from the columns of its row. `explain` says more, from the log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fairlead_schema.commands.session_status import SessionStatus, StatusState


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """What the read models keep of a session's execution."""

    owner: str | None = None
    broken: str | None = None
    archived: bool = False
    stored: bool = False
    """Its events are in a file."""
    waiting: bool = False
    """Every open call waits for a person."""
    asks: int = 0
    pending: int = 0
    work_requested: bool = False
    interrupted: bool = False
    rested: str | None = None
    detail: str | None = None
    wake_at: int | None = None


_RESTS: Final[Mapping[str, StatusState]] = {
    "idle": "idle",
    "failed": "failed",
    "interrupted": "interrupted",
    "declined": "interrupted",
    "over-budget": "over-budget",
    "budget-unknown": "over-budget",
    "retry-later": "retrying",
    "context-unavailable": "retrying",
    "parked": "waiting",
    "handover": "queued",
}


def session_status(facts: StatusFacts) -> SessionStatus:
    """The state, its reason and what waits. Every row has one."""
    state, code = _state_and_code(facts)
    return SessionStatus(
        state=state,
        code=code,
        detail=facts.broken or facts.detail,
        wake_at=facts.wake_at,
        asks=facts.asks,
        pending=facts.pending,
        owner=facts.owner,
    )


def _state_and_code(facts: StatusFacts) -> tuple[StatusState, str]:
    if facts.broken is not None:
        return "broken", "unreadable"
    if facts.stored:
        return "stored", "stored"
    if facts.asks and (facts.waiting or facts.owner is None):
        return "waiting", "ask"
    if facts.owner is not None:
        return "running", "stopping" if facts.interrupted else "turn"
    if facts.archived:
        return "archived", "archived"
    if facts.interrupted:
        return "queued", "stopping"
    reason = facts.rested
    if reason == "parked":
        return "waiting", "tool"
    if facts.work_requested and facts.pending and facts.wake_at is None:
        return "queued", "pending-input"
    if reason is None:
        return ("queued", "pending-input") if facts.work_requested else ("idle", "idle")
    return _RESTS.get(reason, "resting"), reason
