"""What a session has used, and its budget."""

from dataclasses import dataclass, field

from fairlead_schema.catalog import Tokens
from fairlead_schema.ids import SessionId
from fairlead_schema.session_info import ModelUsage


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits on everything the session uses. None does not limit."""

    cost: float | None = None
    tokens: int | None = None

    def exceeds(self, other: "Budget") -> bool:
        """Whether this budget allows something that the other one does not."""
        return _higher(other.cost, self.cost) or _higher(other.tokens, self.tokens)


def _higher(before: float | None, after: float | None) -> bool:
    return before is not None and (after is None or after > before)


@dataclass(frozen=True)
class ChildUsage:
    """What the sessions of this one's calls have used, with all sessions below them."""

    cost: float = 0.0
    tokens: int = 0
    uncounted: tuple[SessionId, ...] = ()
    """Child sessions that have not reported their usage yet."""


@dataclass(frozen=True)
class Usage:
    """What the session has used, and its limits."""

    cost: float = 0.0
    tokens: Tokens = field(default_factory=Tokens)
    models: tuple[ModelUsage, ...] = ()
    """The same by model, in the order of their first use. A variant is no other model."""
    budget: Budget = field(default_factory=Budget)
    children: ChildUsage = field(default_factory=ChildUsage)
