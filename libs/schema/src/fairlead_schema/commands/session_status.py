"""The state of a session in a list: one word, one reason, and what waits."""

from typing import Literal, TypeAlias

from fairlead_schema.model import Model
from fairlead_schema.session_info import SessionInfo

StatusState: TypeAlias = Literal[
    "running",
    "waiting",
    "queued",
    "retrying",
    "over-budget",
    "interrupted",
    "failed",
    "resting",
    "idle",
    "archived",
    "stored",
    "broken",
]


class SessionStatus(Model):
    """What a session does now, as the read models know it."""

    state: StatusState
    code: str
    """The reason of the state, for programs: `permission`, `tool`, `turn`, or why the session rests."""
    detail: str | None = None
    wake_at: int | None = None
    """When a timer goes on with it."""
    asks: int = 0
    """How many permissions and questions wait for people."""
    pending: int = 0
    """How many inputs wait to be promoted."""
    owner: str | None = None
    """The runner that drains the session."""


class SessionBudget(Model):
    """What a session may use in all."""

    cost: float | None = None
    tokens: int | None = None


class SessionOverview(SessionInfo):
    """A session with its state."""

    status: SessionStatus
    seq: int | None = None
    """The last event that this shows. A reader who heard of a later one reads again."""
    budget: SessionBudget | None = None
