"""How a small call to a model ended."""

from dataclasses import dataclass

from fairlead_cli.errors import CommandError
from fairlead_schema.catalog import Tokens


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """What the model said, what it cost in USD, and how long it took."""

    text: str
    used: Tokens
    cost: float
    took_s: float


class TrialFailed(CommandError):
    """The call did not end with an answer. The message says what to correct."""
