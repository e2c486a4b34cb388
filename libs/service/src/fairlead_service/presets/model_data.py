"""Windows and prices of models, from `model_data.json`.

`make model-data` writes the file from the package genai-prices. To import the package takes a third of
a second and 13 MiB in every process. The file takes 3 ms, and is read at the first question.
"""

import re
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

import orjson

FILE: Final = "model_data.json"
LOOKUPS_MAX: Final = 1024


@lru_cache(LOOKUPS_MAX)
def find_model(provider: str, name: str, day: date | None = None) -> dict[str, Any] | None:
    """The `name`, `context` and `cost` of a model as a table of the configuration. None: unknown.

    The prices are those of `day`, or of the day of the first question. Dated names and other
    spellings are found too.
    """
    models, wanted = _load()["providers"].get(provider, {}), name.lower()
    key = wanted if wanted in models else _other_spelling(provider, wanted)
    if key is None:
        return None
    model = models[key]
    on = (day or datetime.now(UTC).date()).isoformat()
    in_force = [price for price in model["prices"] if price.get("since", "") <= on]
    price = in_force[-1] if in_force else model["prices"][0]
    cost = {key: rate for key, rate in price.items() if key != "since"}
    shown = {key: model[key] for key in ("name", "context") if key in model}
    return {**shown, "cost": cost}


@cache
def model_names(provider: str) -> tuple[str, ...]:
    """The models of a provider, as the data names them."""
    return tuple(_load()["providers"].get(provider, {}))


def data_source() -> str:
    """The package that the data comes from, with its version."""
    return str(_load()["source"])


def _other_spelling(provider: str, name: str) -> str | None:
    """The model whose pattern fits a name: the first one, as the package decides it."""
    return next((key for key, pattern in _patterns(provider) if pattern.search(name)), None)


@cache
def _patterns(provider: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    models = _load()["providers"].get(provider, {})
    return tuple(
        (key, re.compile(model["match"])) for key, model in models.items() if "match" in model
    )


@cache
def _load() -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(files(__package__).joinpath(FILE).read_bytes())
    return content
