"""The command line: names of commands, options, exit codes, one line for a failure."""

import argparse
from pathlib import Path

import pytest

from fairlead_cli.__main__ import main
from fairlead_cli.command_line import argument_parser
from fairlead_cli.command_line.command_table import COMMANDS
from fairlead_cli.commands.stack.sim import parse_settings
from fairlead_cli.commands.stack.up import build_plan, parse_scale
from fairlead_cli.embedded.services import complete_scale
from fairlead_cli.errors import UsageError
from fairlead_cli.prompts.prompt_text import parse_model, read_options
from fairlead_cli.service_names import SCALABLE

NOWHERE = "http://127.0.0.1:9"


def parse(*argv: str) -> argparse.Namespace:
    return argument_parser.parse(argv)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main([name, "--help"])

    assert exit_info.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: fairlead {name}")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in COMMANDS)


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["up", "--nonsense"], ["tail"]])
def test_what_is_not_understood_exits_2(argv: list[str]) -> None:
    assert main(argv) == 2


def test_up_has_the_defaults_it_promises(tmp_path: Path) -> None:
    plan = build_plan(parse("up"), tmp_path, None)

    assert (plan.port, plan.state, plan.config, plan.sim) == (None, Path(".fairlead"), None, True)


def test_up_finds_the_configuration_of_its_directory(tmp_path: Path) -> None:
    (tmp_path / "fairlead.toml").touch()

    local = build_plan(parse("up"), tmp_path, None)
    sim = build_plan(parse("up", "--sim"), tmp_path, None)
    explicit = build_plan(parse("up", "--config", "other.toml"), tmp_path, "third.toml")

    assert (local.config, local.sim) == (tmp_path / "fairlead.toml", False)
    assert (sim.config, sim.sim) == (None, True)
    assert explicit.config == Path("other.toml")


def test_the_simulated_provider_takes_a_seed_and_scenarios(tmp_path: Path) -> None:
    file = tmp_path / "scenarios.toml"
    file.write_text('[[scenario]]\nname = "hi"\nmodel = "demo"\nscript = "answer=hello"\n')

    settings = parse_settings(parse("sim", "--scenarios", str(file), "--seed", "7"))

    assert (settings.seed, [scenario.name for scenario in settings.scenarios]) == (7, ["hi"])
    assert parse_settings(parse("sim")).scenarios == ()


def test_scenarios_that_cannot_be_read_are_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--scenarios: .*missing"):
        parse_settings(parse("sim", "--scenarios", str(tmp_path / "missing.toml")))


def test_scale_is_read_pair_by_pair() -> None:
    assert parse_scale(["runner=2", "tools=3", "runner=4"]) == {"runner": 4, "tools": 3}


@pytest.mark.parametrize("pair", ["runner", "runner=", "runner=two", "runner=-1"])
def test_a_scale_that_is_no_number_is_refused(pair: str) -> None:
    with pytest.raises(UsageError, match="NAME=N"):
        parse_scale([pair])


@pytest.mark.parametrize("scale", [{"runer": 2}, {"runner": 65}, {"gateway": 2}])
def test_a_scale_that_cannot_run_is_refused(scale: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        complete_scale(scale)


def test_help_offers_exactly_the_services_that_can_be_scaled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--help"])

    help_text = " ".join(capsys.readouterr().out.split())
    services = (
        help_text.partition("processes of a service to run (")[2].partition(")")[0].split(", ")
    )
    assert services == list(SCALABLE)
    assert all(complete_scale({name: 2})[name] == 2 for name in services)
    with pytest.raises(UsageError, match=f"scale {', '.join(services)} instead"):
        complete_scale({"gateway": 2})


def test_a_model_is_named_with_its_provider() -> None:
    ref = parse_model("acme/models/fast")

    assert ref is not None
    assert (ref.provider_id, ref.id) == ("acme", "models/fast")
    assert parse_model(None) is None


@pytest.mark.parametrize("text", ["fast", "/fast", "acme/"])
def test_a_model_without_provider_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="PROVIDER/MODEL"):
        parse_model(text)


@pytest.mark.parametrize(
    ("option", "content"),
    [
        ("--schema", None),
        ("--schema", "{"),
        ("--schema", "[1]"),
        ("--system", ""),
        ("--model", "x"),
        ("--id", "mine"),
    ],
)
def test_an_option_of_a_prompt_that_cannot_hold_exits_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str, content: str | None
) -> None:
    """P-18: a schema that is missing, no JSON or no object; an empty text; no name of a model."""
    value = content or ""
    if option == "--schema":
        file = tmp_path / "schema.json"
        value = str(file)
        if content is not None:
            file.write_text(content)

    code = main(["prompt", "--session", "ses_x", option, value, "hi", "--http", NOWHERE])

    assert code == 2
    assert option in capsys.readouterr().err


def test_options_of_a_prompt_are_read_from_the_command_line(tmp_path: Path) -> None:
    """P-18: in a session that exists, model and agent hold for this prompt alone."""
    file = tmp_path / "schema.json"
    file.write_text('{"type": "object"}')
    chosen = ["--model", "sim/fast", "--agent", "plan", "--tools", "read, grep"]
    line = ["prompt", "hi", *chosen, "--system", "Be brief.", "--schema", str(file)]

    inside = read_options(parse(*line, "--session", "ses_x"))
    new = read_options(parse(*line, "--tools", ""))

    assert inside.wire() == {
        "system": "Be brief.",
        "model": {"id": "fast", "providerID": "sim"},
        "agent": "plan",
        "tools": ["read", "grep"],
        "schema": {"type": "object"},
    }
    assert (new.model, new.agent, new.tools) == (None, None, ())
