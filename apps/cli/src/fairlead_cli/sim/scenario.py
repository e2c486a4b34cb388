"""Scenario files: named scripts, chosen by the model or by the user's text.

    [[scenario]]
    name = "weather"
    model = "demo"            # the whole name, or its last segment
    match = "weather in"      # a regular expression, searched in the user's text
    script = "tool=weather args='{}' ; answer='It is sunny.'"

A script has the syntax of a directive. A scenario needs a model, a match or both. The first scenario
that fits a request is used.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead_cli.sim import directive
from fairlead_cli.sim.script import SimRequest

_FIELDS = frozenset({"name", "model", "match", "script"})


class BadScenario(ValueError):
    """The scenario file cannot be read: correct the file."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A script, and the requests that it answers."""

    name: str
    turns: tuple[directive.DirectiveTurn, ...]
    model: str | None = None
    match: re.Pattern[str] | None = None

    def fits(self, request: SimRequest) -> bool:
        names = {request.model, request.model.rpartition("/")[2]}
        if self.model is not None and self.model not in names:
            return False
        return self.match is None or self.match.search(request.user_text) is not None


def load_scenarios(file: Path) -> tuple[Scenario, ...]:
    """The scenarios of a file. Raises BadScenario."""
    try:
        return parse_scenarios(file.read_text())
    except OSError as error:
        raise BadScenario(f"{file}: {error.strerror}") from error


def parse_scenarios(text: str) -> tuple[Scenario, ...]:
    """The scenarios of a TOML text. Raises BadScenario."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadScenario(f"Not TOML: {error}") from error
    tables = document.pop("scenario", [])
    if document or not isinstance(tables, list):
        unknown = ", ".join(document) or "scenario"
        raise BadScenario(f"Only [[scenario]] is known, not {unknown}")
    return tuple(_parse_scenario(index, table) for index, table in enumerate(tables))


def _parse_scenario(index: int, table: Any) -> Scenario:  # noqa: ANN401 - any TOML value
    fields = table if isinstance(table, dict) else {}
    name = str(fields.get("name", f"number {index + 1}"))
    unknown = fields.keys() - _FIELDS
    if unknown or not all(isinstance(value, str) for value in fields.values()):
        problem = ", ".join(unknown) or fields
        raise BadScenario(f"Scenario {name}: unknown field or value that is no text: {problem}")
    if "script" not in fields or not fields.keys() & {"model", "match"}:
        raise BadScenario(f"Scenario {name} needs a script, and a model or a match")
    try:
        turns = directive.parse_turns(fields["script"])
        match = re.compile(fields["match"], re.IGNORECASE) if "match" in fields else None
    except (directive.BadDirective, re.error) as error:
        raise BadScenario(f"Scenario {name}: {error}") from error
    return Scenario(name, turns, fields.get("model"), match)
