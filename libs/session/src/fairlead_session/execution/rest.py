"""Rest: one row per reason. Only code that chooses a reason names it; other code reads its row.

Two places repeat the table. A query of the sweep names reasons because its index needs literals; a
test compares them. `verify` has rules of its own on purpose: it must find a mistake in this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from fairlead_schema.events.execution import RestReason

RestTimer: TypeAlias = Literal["back-off", "recheck"]
"""A back-off lasts as long as the provider asks. A recheck comes after a fixed pause."""

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
    finished: bool = False
    """The session did all that was asked. Its last answer is its result."""
    timer: RestTimer | None = None
    """The timer that ends the rest."""
    wakes_at_once: bool = False
    """The runner wakes the session right after the release, so that another runner takes it."""


REST_RULES: Final[Mapping[RestReason, RestRule]] = MappingProxyType(
    {
        "idle": RestRule("there is nothing to do", "a new prompt runs it", finished=True),
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
            wakes_at_once=True,
        ),
        "retry-later": RestRule(
            "its provider asked to wait before the next attempt",
            "a timer wakes it",
            goes_on=True,
            same_turn=True,
            waits=True,
            timer="back-off",
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
            timer="recheck",
        ),
    }
)

_NOT_AT_REST: Final = RestRule("it does not rest", "it goes on")


def rest_rule(rested: RestReason | None) -> RestRule:
    """The rule of a reason. Without a reason the session does not rest, and nothing applies."""
    return _NOT_AT_REST if rested is None else REST_RULES[rested]


def stop_reason(declined: str | None) -> RestReason:
    """Why a session rests after a stop. `declined` names what a person declined, if that stopped it."""
    return "declined" if declined else "interrupted"
