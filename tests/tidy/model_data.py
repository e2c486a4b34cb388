"""Writes `model_data.json`: what the package genai-prices knows about the models of our presets.

`make model-data` runs it after the package was updated in the lock file.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
from genai_prices import data, types

from fairlead_service.presets import model_data
from fairlead_service.presets.preset import PRESETS

ROOT = Path(__file__).parents[2]
FILE = ROOT / "libs/service/src/fairlead_service/presets" / model_data.FILE
PACKAGE = "genai-prices"
RATES = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
}
# Models of other vendors behind Google's own platform, and prices of batches: our protocols reach neither.
NOT_OFFERED = re.compile(r"^claude-|:batch$")


def providers() -> dict[str, types.Provider]:
    """The providers of the package that our presets name."""
    wanted = {preset.data for preset in PRESETS.values()}
    return {each.id: each for each in data.providers if each.id in wanted}


def is_offered(provider: str, model: types.ModelInfo) -> bool:
    """Whether the model answers in text, at an address that our presets know."""
    if provider != "anthropic" and NOT_OFFERED.search(model.id):
        return False
    prices = [each for _, each in dated_prices(model)]
    return all(each.output_mtok is not None or _is_free(each) for each in prices)


def _is_free(price: types.ModelPrice) -> bool:
    return all(value is None for value in vars(price).values())


def dated_prices(model: types.ModelInfo) -> Iterator[tuple[str | None, types.ModelPrice]]:
    """The prices of a model in time, each with the day from which it holds."""
    if isinstance(model.prices, types.ModelPrice):
        yield None, model.prices
        return
    for each in model.prices:
        match each.constraint:
            case None:
                yield None, each.prices
            case types.StartDateConstraint(start_date=day):
                yield day.isoformat(), each.prices
            case _:
                raise ValueError(f"{model.id}: a price for some hours of the day cannot be said")


def rates(price: types.ModelPrice) -> dict[str, Any]:
    """The price as a `cost` table of the configuration."""
    values = {key: getattr(price, unit) for key, unit in RATES.items()}
    starts = sorted(
        {
            tier.start
            for value in values.values()
            if isinstance(value, types.TieredPrices)
            for tier in value.tiers
        }
    )
    tiers = [{"context": start, **_rates_above(values, start)} for start in starts]
    return {**_rates_above(values, 0), **({"tier": tiers} if tiers else {})}


def _rates_above(values: dict[str, Any], start: int) -> dict[str, float]:
    return {key: _rate(value, start) for key, value in values.items() if value is not None}


def _rate(value: Any, start: int) -> float:  # noqa: ANN401 - a plain or a tiered price
    if not isinstance(value, types.TieredPrices):
        return float(value)
    passed = [tier.price for tier in value.tiers if tier.start <= start]
    return float(passed[-1] if passed and start else value.base)


def pattern(clause: object) -> str:
    """A clause of the package as a regular expression for `re.search`."""
    match clause:
        case types.ClauseEquals(equals=text):
            return f"^{re.escape(text)}$"
        case types.ClauseStartsWith(starts_with=text):
            return f"^{re.escape(text)}"
        case types.ClauseEndsWith(ends_with=text):
            return f"{re.escape(text)}$"
        case types.ClauseContains(contains=text):
            return re.escape(text)
        case types.ClauseRegex(regex=text):
            return str(text)
        case types.ClauseOr(or_=clauses):
            return "|".join(f"(?:{pattern(each)})" for each in clauses)
        case types.ClauseAnd(and_=clauses):
            return "^" + "".join(f"(?=.*?(?:{pattern(each)}))" for each in clauses)
        case _:
            raise ValueError(f"unknown clause: {clause!r}")


def entry(model: types.ModelInfo, context: int | None) -> dict[str, Any]:
    """One model as the file holds it."""
    match = pattern(model.match)
    fields = {
        "name": model.name,
        "context": context,
        "match": None if match == f"^{re.escape(model.id)}$" else match,
        "prices": [
            {**({"since": since} if since else {}), **rates(price)}
            for since, price in dated_prices(model)
        ],
    }
    return {key: value for key, value in fields.items() if value is not None}


def build() -> bytes:
    """The content of the file: one line for each model."""
    known = providers()
    windows = {model.id: model.context_window for model in known["openrouter"].models}
    lines = []
    for id_, provider in sorted(known.items()):
        # Where the package has no window, the same model at OpenRouter often has one.
        models = [
            orjson.dumps(model.id)
            + b": "
            + orjson.dumps(entry(model, model.context_window or windows.get(f"{id_}/{model.id}")))
            for model in provider.models
            if is_offered(id_, model)
        ]
        lines.append(orjson.dumps(id_) + b": {\n" + b",\n".join(models) + b"\n}")
    source = orjson.dumps(f"{PACKAGE} {version(PACKAGE)}")
    return b'{"source": ' + source + b', "providers": {\n' + b",\n".join(lines) + b"\n}}\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        FILE.write_bytes(build())
    else:
        sys.exit(FILE.read_bytes() != build())
