"""How quickly a command starts: what is loaded, counted in modules, because seconds are noisy."""

import subprocess
import sys

import pytest

from fairlead_cli.command_line.command_table import COMMANDS

HEAVY = {
    "aiohttp",
    "httpx",
    "nats",
    "psycopg",
    "pydantic",
    "rich",
    "starlette",
    "textual",
    "uvloop",
}
FAR = {"aiohttp", "click", "faststream", "nats", "psycopg", "pygments", "starlette", "uvloop"}
PROGRAM = """
import sys
from fairlead_cli.__main__ import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("loaded:", *sys.modules)
"""
AWAY = ["--http", "http://127.0.0.1:9"]


def loaded(*arguments: str) -> set[str]:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], check=True, capture_output=True, text=True
    )
    return set(process.stdout.rpartition("loaded:")[2].split())


def test_the_help_loads_nothing_but_the_list_of_commands() -> None:
    modules = loaded("--help")

    assert modules & HEAVY == set()
    own = {name for name in modules if name.startswith("fairlead")}
    assert own == {
        "fairlead_cli",
        "fairlead_cli.__main__",
        "fairlead_cli.command_line",
        "fairlead_cli.command_line.argument_parser",
        "fairlead_cli.command_line.command_table",
        "fairlead_cli.errors",
        "fairlead_cli.command_line.exit_codes",
    }


@pytest.mark.parametrize("name", ["up", "prompt", "bench", "token"])
def test_the_help_of_a_command_loads_its_options_alone(name: str) -> None:
    modules = loaded(name, "--help")

    assert modules & HEAVY == set()
    assert not [module for module in modules if module.startswith("fairlead_cli.commands")]
    assert f"fairlead_cli.options.{COMMANDS[name].module.partition('.')[0]}" in modules


@pytest.mark.parametrize("arguments", [["sessions", "--json"], ["prompt", "hi"], ["cost"]])
def test_a_command_that_speaks_to_a_gateway_loads_no_server_and_no_other_command(
    arguments: list[str],
) -> None:
    modules = loaded(*arguments, *AWAY)

    assert "fairlead_client" in modules
    assert modules & FAR == set()
    commands = {name for name in modules if name.startswith("fairlead_cli.commands.")}
    module = f"fairlead_cli.commands.{COMMANDS[arguments[0]].module}"
    assert commands == {module, module.rpartition(".")[0]}
