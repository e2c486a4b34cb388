"""docs/operations/capacity.md says what the code computes with."""

import json
from pathlib import Path

import pytest

from fairlead_cli.__main__ import main
from fairlead_cli.capacity.figures import MEASURED
from fairlead_cli.capacity.limits import LIMITS

PAGE = Path(__file__).parents[4] / "docs/operations/capacity.md"


def rows() -> dict[str, list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: rest for name, *rest in cells}


def test_the_page_has_the_measured_figures() -> None:
    table = rows()
    parts = [part.strip("`") for part in table["processor time of one core"]]
    for name, figures in (
        ("prompt and its step, ms", MEASURED.prompt_ms),
        ("call and the step after it, ms", MEASURED.call_ms),
        ("live fragment, µs", MEASURED.fragment_us),
    ):
        shown = dict(zip(parts, table[name], strict=True))
        assert shown == {part: f"{figures[part]:g}" if part in figures else "" for part in parts}


def test_the_page_has_every_limit_with_its_advice() -> None:
    table = rows()
    for limit in LIMITS:
        counted, comfortable, advice = table[f"`{limit.name}`"]
        assert counted == limit.counted
        assert comfortable == f"{limit.comfortable:,g}"
        assert advice == limit.advice


def test_the_command_computes_as_json_and_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", "--agents", "1000", "--json"]) == 0
    needed = json.loads(capsys.readouterr().out)["plan"]
    assert main(["capacity", "--agents", "1000"]) == 0
    shown = capsys.readouterr().out

    assert needed["needs"].keys() >= {"ingest", "runner", "tools", "projector", "gateway", "nats"}
    assert "300 commits a second, 3 nats-servers" in shown


@pytest.mark.parametrize("value", ["0", "-3", "many", "inf"])
def test_a_number_of_agents_that_makes_no_sense_is_refused(
    value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capacity", "--agents", value]) == 2
    assert "--agents" in capsys.readouterr().err
