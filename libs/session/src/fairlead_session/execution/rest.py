"""Rest: one row per reason. A new reason needs a row here and nothing else.

`verify` keeps rules of its own on purpose: it must find a mistake in this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fairlead_schema.events.execution import RestReason

_PROMPT_OR_RESUME: Final = "a new prompt or a resume runs it"
_BY_ITSELF: Final = "it is tried again by itself"


@dataclass(frozen=True, slots=True)
class RestRule:
    """What a reason means for the work of the session."""

    sentence: str
    next_step: str
    goes_on: bool = False
    """Work that somebody asked for stays asked for."""
    same_turn: bool = False
    """The next turn is the same turn. Compactions that were tried for it still count."""
    ends_interrupt: bool = False
    """The owner has honoured an interrupt."""
    waits: bool = False
    """The session waits for a time, a place or a limit. A free runner changes nothing."""
    limit_may_rise: bool = False
    """A limit outside the log may have changed, so every wake is worth a look."""


REST_RULES: Final[Mapping[RestReason, RestRule]] = MappingProxyType(
    {
        "idle": RestRule("there is nothing to do", "a new prompt runs it"),
        "parked": RestRule(
            "it waits for tool calls to settle", "the last settlement wakes it", goes_on=True
        ),
        "interrupted": RestRule(
            "somebody interrupted it", _PROMPT_OR_RESUME, goes_on=True, ends_interrupt=True
        ),
        "declined": RestRule(
            "a person declined a tool call", _PROMPT_OR_RESUME, goes_on=True, ends_interrupt=True
        ),
        "failed": RestRule("its last provider turn failed", _PROMPT_OR_RESUME),
        "context-unavailable": RestRule(
            "the context of its location could not be observed",
            _BY_ITSELF,
            goes_on=True,
            same_turn=True,
            waits=True,
        ),
        "held": RestRule(
            "a crash was recovered and its policy holds the turn back", "a resume runs it"
        ),
        "handover": RestRule(
            "its runner left and handed it over",
            "another runner takes it",
            goes_on=True,
            same_turn=True,
        ),
        "retry-later": RestRule(
            "its provider asked to wait before the next attempt",
            "a timer wakes it",
            goes_on=True,
            same_turn=True,
            waits=True,
        ),
        "turn-limit": RestRule(
            "it reached the limit of provider turns without new input", _PROMPT_OR_RESUME
        ),
        "repeated-calls": RestRule("the model kept making the same tool call", _PROMPT_OR_RESUME),
        "over-budget": RestRule(
            "its budget is used up",
            "raising the budget runs it",
            same_turn=True,
            waits=True,
            limit_may_rise=True,
        ),
        "budget-unknown": RestRule(
            "whether its tenant's budget is used up is not known",
            _BY_ITSELF,
            goes_on=True,
            same_turn=True,
            waits=True,
        ),
    }
)
