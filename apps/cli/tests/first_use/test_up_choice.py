"""`fairlead up` without a file: a key that it finds is used, and a line says so."""

import stat
from pathlib import Path

import pytest

from fairlead_cli.command_line.argument_parser import parse
from fairlead_cli.commands.stack.up import build_plan, describe_choice
from fairlead_cli.embedded.configuration import choose_config
from fairlead_cli.embedded.service_environment import service_environment
from fairlead_cli.first_use.found_provider import find_keys
from fairlead_cli.local_stack.foreground_stack import describe_model
from fairlead_cli.local_stack.stack_plan import StackPlan
from fairlead_cli.service_names import SERVICES
from fairlead_service.config.configuration import Config

KEYS = {"OPENAI_API_KEY": "k1", "ANTHROPIC_API_KEY": "k2", "GEMINI_API_KEY": " "}


def plan(place: Path, *argv: str) -> StackPlan:
    args = parse(["up", *argv])
    return build_plan(args, place, None, find_keys(KEYS))


def test_the_first_key_is_used_and_the_line_names_variable_model_and_ways_out() -> None:
    line = describe_choice(find_keys(KEYS))

    assert "anthropic/claude-sonnet-5-5 with the key in ANTHROPIC_API_KEY" in line
    assert "OPENAI_API_KEY is set too" in line
    assert "GEMINI" not in line
    assert "--sim" in line
    assert "fairlead init" in line
    assert not {"k1", "k2"} & set(line.split())


def test_another_address_stands_in_the_line() -> None:
    found = find_keys(KEYS | {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/"})

    assert " at http://127.0.0.1:9 with" in describe_choice(found)


def test_without_a_key_the_line_says_that_answers_are_simulated(place: Path) -> None:
    args = parse(["up"])

    assert "simulated provider" in describe_choice(find_keys({}))
    assert build_plan(args, place, None, ()).sim


def test_sim_and_a_file_stand_over_a_key(place: Path) -> None:
    found = plan(place)
    (place / "fairlead.toml").touch()
    with_file, sim = plan(place), plan(place, "--sim")

    assert found.found is not None
    assert (found.found.preset.name, found.sim) == ("anthropic", False)
    assert (with_file.found, with_file.sim) == (None, False)
    assert (sim.found, sim.sim) == (None, True)


def test_the_key_reaches_only_the_runner(place: Path) -> None:
    found = find_keys(KEYS)[0]
    generated = place / "made.toml"

    chosen = choose_config(generated, config_path=None, sim=False, env=KEYS, cwd=place, found=found)

    assert (chosen.sim_port, chosen.config.default_model) == (
        None,
        "anthropic/claude-sonnet-5-5",
    )
    assert chosen.config.location.default == str(place)
    assert "k2" not in generated.read_text()
    assert stat.S_IMODE(generated.stat().st_mode) == 0o600
    holders = {
        name: {*KEYS} & service_environment(name, KEYS, chosen.config).keys() for name in SERVICES
    }
    assert {name: keys for name, keys in holders.items() if keys} == {
        "runner": {"ANTHROPIC_API_KEY"}
    }


@pytest.mark.parametrize("sim", [True, False])
def test_a_generated_file_is_written_again_for_another_choice(place: Path, *, sim: bool) -> None:
    generated, found = place / "made.toml", find_keys(KEYS)[0]
    for each in (sim, not sim):
        chosen = choose_config(
            generated, config_path=None, sim=each, env={}, cwd=place, found=found
        )

        assert set(chosen.config.provider) == ({"sim"} if each else {"anthropic"})


def test_a_stack_names_its_model_and_a_key_that_is_missing() -> None:
    config = Config.model_validate({"provider": {"openai": {}}})

    assert describe_model(config, KEYS) == "openai/gpt-6.1-sol"
    assert "OPENAI_API_KEY is not set: set it" in describe_model(config, {})
    assert "set default_model" in describe_model(Config(), {})
