"""What people type: names, options, exit codes, one line for a failure."""

import argparse
from pathlib import Path

import pytest

from fairlead_cli.__main__ import COMMANDS, build_parser, main
from fairlead_cli.commands.prompt import parse_model
from fairlead_cli.commands.sim import settings_of
from fairlead_cli.commands.up import parse_scale, plan_of
from fairlead_cli.embedded.services import checked_scale
from fairlead_cli.errors import UsageError

NOWHERE = "http://127.0.0.1:9"


def parse(*argv: str) -> argparse.Namespace:
    return build_parser(argv[0]).parse_args(argv)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"bench"}))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: fairlead {name}")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in COMMANDS)


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["up", "--nonsense"], ["tail"]])
def test_what_is_not_understood_exits_2(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)

    assert ended.value.code == 2


def test_up_has_the_defaults_it_promises(tmp_path: Path) -> None:
    plan = plan_of(parse("up"), tmp_path, None)

    assert (plan.port, plan.state, plan.config, plan.sim) == (None, Path(".fairlead"), None, True)


def test_up_finds_the_configuration_of_its_directory(tmp_path: Path) -> None:
    (tmp_path / "fairlead.toml").touch()

    found = plan_of(parse("up"), tmp_path, None)
    simulated = plan_of(parse("up", "--sim"), tmp_path, None)
    named = plan_of(parse("up", "--config", "other.toml"), tmp_path, "third.toml")

    assert (found.config, found.sim) == (tmp_path / "fairlead.toml", False)
    assert (simulated.config, simulated.sim) == (None, True)
    assert named.config == Path("other.toml")


def test_the_simulated_provider_takes_a_seed_and_scenarios(tmp_path: Path) -> None:
    file = tmp_path / "scenarios.toml"
    file.write_text('[[scenario]]\nname = "hi"\nmodel = "demo"\nscript = "answer=hello"\n')

    settings = settings_of(parse("sim", "--scenarios", str(file), "--seed", "7"))

    assert (settings.seed, [one.name for one in settings.scenarios]) == (7, ["hi"])
    assert settings_of(parse("sim")).scenarios == ()


def test_scenarios_that_cannot_be_read_are_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--scenarios: .*missing"):
        settings_of(parse("sim", "--scenarios", str(tmp_path / "missing.toml")))


def test_scale_is_read_pair_by_pair() -> None:
    assert parse_scale(["runner=2", "tools=3", "runner=4"]) == {"runner": 4, "tools": 3}


@pytest.mark.parametrize("pair", ["runner", "runner=", "runner=two", "runner=-1"])
def test_a_scale_that_is_no_number_is_refused(pair: str) -> None:
    with pytest.raises(UsageError, match="NAME=N"):
        parse_scale([pair])


@pytest.mark.parametrize("scale", [{"runer": 2}, {"runner": 65}, {"gateway": 2}])
def test_a_scale_that_cannot_run_is_refused(scale: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        checked_scale(scale)


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
    ],
)
def test_a_server_that_is_away_is_said_in_one_line(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*argv, "--http", NOWHERE])

    said = capsys.readouterr().err
    assert code == 1
    assert "fairlead up" in said
    assert said.count("\n") == 1


def test_options_that_contradict_each_other_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["prompt", "--session", "ses_x", "--model", "a/b", "hi"])

    assert code == 2
    assert "--session" in capsys.readouterr().err


def test_a_command_that_is_not_installed_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMMANDS, "yodel", "sing")

    code = main(["yodel"])

    assert code == 1
    assert "not part of this installation" in capsys.readouterr().err
