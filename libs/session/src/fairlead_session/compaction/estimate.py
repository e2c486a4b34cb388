"""How many tokens a request has, before anybody counted: a plain formula, corrected per model.

The formula knows no tokeniser. What providers report of each request corrects it, within bounds, so that
one strange report cannot switch compaction off.
"""

from typing import Final

from pydantic_core import to_json

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.provider.request import ModelRequest

RATIO_MIN: Final = 0.5
RATIO_MAX: Final = 3.0
# How much the newest report weighs against all before it.
_WEIGHT: Final = 0.5
_DIGITS: Final = 4


def tokens(text: str) -> int:
    """A quarter of the text's UTF-16 length, rounded half up."""
    plain = text.isascii()
    units = len(text) if plain else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return (units + 2) // 4


def estimate_value(value: object) -> int:
    """The estimate of a value as JSON."""
    return tokens(to_json(value).decode())


def estimate_request(request: ModelRequest) -> int:
    """The estimate of everything that the model reads."""
    return estimate_value(
        {"system": request.system, "messages": request.turns, "tools": request.tools}
    )


def prompt_tokens(counted: Tokens) -> int:
    """The tokens of a request, as its provider counted them."""
    return counted.input + counted.cache.read + counted.cache.write


def apply_ratio(plain: int, ratio: float | None) -> int:
    """The plain estimate as experience with the model corrects it."""
    return plain if ratio is None else int(plain * ratio + 0.5)


def update_ratio(ratio: float | None, *, plain: int, reported: int) -> float | None:
    """The ratio after one more report; one that counts nothing teaches nothing."""
    if plain <= 0 or reported <= 0:
        return ratio
    seen = _bounded(reported / plain)
    return seen if ratio is None else _bounded(ratio + _WEIGHT * (seen - ratio))


def key(model: ModelRef) -> str:
    """Under which name a model's ratio is kept: all its variants count alike."""
    return f"{model.provider_id}/{model.id}"


def _bounded(ratio: float) -> float:
    return round(min(max(ratio, RATIO_MIN), RATIO_MAX), _DIGITS)
