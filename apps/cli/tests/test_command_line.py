"""The command line: names of commands, options, exit codes, one line for a failure."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_cli.__main__ import COMMANDS, CommandEntry, build_parser, main
from fairlead_cli.commands.session import prompt
from fairlead_cli.commands.session.prompt import parse_model
from fairlead_cli.commands.stack.sim import parse_settings
from fairlead_cli.commands.stack.up import build_plan, parse_scale
from fairlead_cli.embedded.services import SCALABLE, complete_scale
from fairlead_cli.errors import UsageError

NOWHERE = "http://127.0.0.1:9"


def parse(*argv: str) -> argparse.Namespace:
    return build_parser(argv[0]).parse_args(argv)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"bench"}))
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
    with pytest.raises(SystemExit) as exit_info:
        main(argv)

    assert exit_info.value.code == 2


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


def test_loading_one_command_leaves_the_others_unloaded() -> None:
    script = (
        "import sys; from fairlead_cli.__main__ import build_parser; build_parser('cancel');"
        "print([name for name in sys.modules if name.startswith('fairlead_cli.commands.')])"
    )

    output = subprocess.check_output([sys.executable, "-c", script], text=True)

    assert output.strip() == str(
        ["fairlead_cli.commands.session", "fairlead_cli.commands.session.cancel"]
    )


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
    "argv",
    [
        ["prompt", "hi"],
        ["tail", "ses_x"],
        ["tail", "ses_x", "--no-follow"],
        ["sessions"],
        ["explain", "ses_x"],
        ["interrupt", "ses_x"],
        ["resume", "ses_x"],
        ["cancel", "ses_x", "msg_x"],
        ["rename", "ses_x", "Mine"],
    ],
)
def test_a_server_that_is_away_is_said_in_one_line(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*argv, "--http", NOWHERE])

    message = capsys.readouterr().err
    assert code == 1
    assert "fairlead up" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "content"),
    [
        ("--schema", None),
        ("--schema", "{"),
        ("--schema", "[1]"),
        ("--system", ""),
        ("--model", "x"),
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
    parser = argparse.ArgumentParser()
    prompt.configure(parser)
    chosen = ["--model", "sim/fast", "--agent", "plan", "--tools", "read, grep"]
    line = ["hi", *chosen, "--system", "Be brief.", "--schema", str(file)]

    inside = prompt.parse_options(parser.parse_args([*line, "--session", "ses_x"]))
    new = prompt.parse_options(parser.parse_args([*line, "--tools", ""]))

    assert inside.wire() == {
        "system": "Be brief.",
        "model": {"id": "fast", "providerID": "sim"},
        "agent": "plan",
        "tools": ["read", "grep"],
        "schema": {"type": "object"},
    }
    assert (new.model, new.agent, new.tools) == (None, None, ())


def test_a_command_that_is_not_installed_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMMANDS, "yodel", CommandEntry("session.yodel", "sing"))

    code = main(["yodel"])

    assert code == 1
    assert "not part of this installation" in capsys.readouterr().err
