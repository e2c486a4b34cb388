"""What a session remembers of commands with an idempotency key."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

InterruptOutcome: TypeAlias = Literal["stopping", "dropped", "idle"]


@dataclass(frozen=True)
class KeptAnswer:
    """How a command was answered, for the caller that sends it again."""

    body: str
    """A hash of the command."""
    seq: int
    """The last sequence of the session after the command."""
    outcome: InterruptOutcome = "idle"
    """What the command did to work, as an interrupt tells it."""
    request: int | None = None
    """The request of a revert or of a move that was open after the command."""
