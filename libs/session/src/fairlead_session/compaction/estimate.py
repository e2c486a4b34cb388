"""Estimates of the tokens of a request: a plain formula, corrected per model.

The formula knows no tokeniser. Reports of providers correct it, within bounds, so that one wrong
report cannot switch compaction off.
"""

from typing import Final

from pydantic_core import to_json

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.provider.request import ModelRequest, ToolDefinition
from fairlead_session.identity_memo import kept_by_identity

RATIO_MIN: Final = 0.5
RATIO_MAX: Final = 3.0
# The weight of the newest report against all earlier reports.
_WEIGHT: Final = 0.5
_DIGITS: Final = 4
_OFFERS_MAX: Final = 64


def tokens(text: str) -> int:
    """A quarter of the text's UTF-16 length, rounded half up."""
    return (text_units(text) + 2) // 4


def text_units(text: str) -> int:
    """The length of a text in UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def units_within(tokens_max: int) -> int:
    """The longest text, in UTF-16, whose estimate is at most so many tokens."""
    return 4 * tokens_max + 1


def estimate_value(value: object) -> int:
    """The estimate of a value as JSON."""
    return tokens(to_json(value).decode())


def estimate_request(request: ModelRequest, turns_units: tuple[int, int] = (0, 0)) -> int:
    """The estimate of everything that the model reads.

    `turns_units` is the number of the first turns, and the length of their JSON, if it is known.
    """
    measured, units = turns_units
    rest = {"system": request.system, "messages": request.turns[measured:], "tools": ()}
    text = to_json(rest).decode()
    # Commas stand between the measured turns, and before the first one of the rest.
    commas = measured if len(request.turns) > measured else max(0, measured - 1)
    return (text_units(text) + _tools_units(request.tools) + units + commas + 2) // 4


@kept_by_identity(_OFFERS_MAX)
def _tools_units(tools: tuple[ToolDefinition, ...]) -> int:
    """The length of the JSON of some tools, without the brackets."""
    return text_units(to_json(tools).decode()) - 2


def prompt_tokens(reported: Tokens) -> int:
    """The tokens of a request, as its provider reports them."""
    return reported.input + reported.cache.read + reported.cache.write


def apply_ratio(plain: int, ratio: float | None) -> int:
    """The plain estimate, corrected by the ratio of the model."""
    return plain if ratio is None else int(plain * ratio + 0.5)


def update_ratio(ratio: float | None, *, plain: int, reported: int) -> float | None:
    """The ratio after one more report. A report of 0 tokens changes nothing."""
    if plain <= 0 or reported <= 0:
        return ratio
    newest = _clamp(reported / plain)
    return newest if ratio is None else _clamp(ratio + _WEIGHT * (newest - ratio))


def key(model: ModelRef) -> str:
    """The key of a model's ratio. All variants of a model share it."""
    return f"{model.provider_id}/{model.id}"


def _clamp(ratio: float) -> float:
    return round(min(max(ratio, RATIO_MIN), RATIO_MAX), _DIGITS)
