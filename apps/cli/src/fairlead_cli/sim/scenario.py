"""Scenario files: named scripts, chosen by the model or by what the user said.

    [[scenario]]
    name = "weather"
    model = "demo"            # the whole name, or its last segment
    match = "weather in"      # a regular expression, searched in the user's text
    script = "tool=weather args='{}' ; answer='It is sunny.'"

A script is written like a directive. A scenario needs a model, a match or both; the first fits.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead_cli.sim import directive
from fairlead_cli.sim.script import Ask

_FIELDS = frozenset({"name", "model", "match", "script"})


class BadScenario(ValueError):
    """A scenario file that cannot be read: mend it."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A script and when it is played."""

    name: str
    turns: tuple[directive.Turn, ...]
    model: str | None = None
    match: re.Pattern[str] | None = None

    def fits(self, ask: Ask) -> bool:
        named = self.model is None or self.model in {ask.model, ask.model.rpartition("/")[2]}
        return named and (self.match is None or self.match.search(ask.said) is not None)


def read(path: Path) -> tuple[Scenario, ...]:
    """The scenarios of a file. Raises BadScenario."""
    try:
        return parsed(path.read_text())
    except OSError as error:
        raise BadScenario(f"{path}: {error.strerror}") from error


def parsed(text: str) -> tuple[Scenario, ...]:
    """The scenarios of a TOML text. Raises BadScenario."""
    try:
        held = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadScenario(f"Not TOML: {error}") from error
    listed = held.pop("scenario", [])
    if held or not isinstance(listed, list):
        raise BadScenario(f"Only [[scenario]] is known, not {', '.join(held) or 'scenario'}")
    return tuple(_scenario(at, one) for at, one in enumerate(listed))


def _scenario(at: int, given: Any) -> Scenario:  # noqa: ANN401 - any TOML value
    fields = given if isinstance(given, dict) else {}
    name = str(fields.get("name", f"number {at + 1}"))
    unknown = fields.keys() - _FIELDS
    if unknown or not all(isinstance(value, str) for value in fields.values()):
        raise BadScenario(f"Scenario {name}: unknown or no text: {', '.join(unknown) or fields}")
    if "script" not in fields or not fields.keys() & {"model", "match"}:
        raise BadScenario(f"Scenario {name} needs a script, and a model or a match")
    try:
        turns = directive.read(fields["script"])
        match = re.compile(fields["match"], re.IGNORECASE) if "match" in fields else None
    except (directive.BadDirective, re.error) as error:
        raise BadScenario(f"Scenario {name}: {error}") from error
    return Scenario(name, turns, fields.get("model"), match)
