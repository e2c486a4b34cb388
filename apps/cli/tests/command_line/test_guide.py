"""The guide of the command line says what the commands do."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fairlead_cli.command_line.argument_parser import build_parsers, configure
from fairlead_cli.command_line.command_table import COMMANDS
from fairlead_cli.command_line.completion import SCRIPTS, command_words
from fairlead_cli.command_line.exit_codes import MEANINGS

ROOT = Path(__file__).parents[4]
GUIDE = (ROOT / "docs/guide/cli.md").read_text()
WITHOUT_JSON = {"acp", "audit", "bench", "chat", "completion", "demo", "nats-callout"}


def rows(heading: str) -> list[str]:
    """The rows of the table below a heading."""
    section = GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| ")][1:]


def test_the_guide_lists_every_command_as_the_help_does() -> None:
    assert rows("Commands") == [
        f"| `fairlead {name}` | {entry.summary} |" for name, entry in COMMANDS.items()
    ]


def test_the_guide_lists_every_exit_code() -> None:
    assert rows("Exit codes") == [f"| {code} | {text} |" for code, text in MEANINGS.items()]


def test_every_command_has_json_but_those_that_the_guide_names() -> None:
    words = command_words()

    assert {name for name in COMMANDS if "--json" not in words[name].options} == WITHOUT_JSON
    sentence = next(line for line in GUIDE.splitlines() if "have no `--json`" in line)
    before = GUIDE[: GUIDE.index(sentence) + len(sentence)]
    assert all(f"`{name}`" in before for name in WITHOUT_JSON)


def test_every_option_in_the_guide_exists() -> None:
    known = {option for entry in command_words().values() for option in entry.options}

    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GUIDE)) - {"--version"}

    assert named <= known


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_completion_script_offers_every_command_and_option(shell: str) -> None:
    script = SCRIPTS[shell](command_words())

    assert all(name in script for name in COMMANDS)
    assert ("-l schema" if shell == "fish" else "--schema") in script


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_completion_script_is_a_script_of_its_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = SCRIPTS[shell](command_words())

    subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fairlead ses", ["sessions"]),
        ("fairlead prompt --sch", ["--schema"]),
        ("fairlead token re", ["revoke"]),
        ("fairlead completion f", ["fish"]),
    ],
)
def test_bash_completes_commands_options_and_choices(line: str, offered: list[str]) -> None:
    words = line.split()
    program = f"""
{SCRIPTS["bash"](command_words())}
COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
_fairlead; printf '%s\\n' "${{COMPREPLY[@]}}"
"""

    output = subprocess.check_output(["bash", "-c", program], text=True)

    assert output.split() == offered


def test_each_command_has_options_and_a_module() -> None:
    _parser, parsers = build_parsers()
    for name, parser in parsers.items():
        configure(name, parser)
        module = COMMANDS[name].module.replace(".", "/")
        assert (ROOT / f"apps/cli/src/fairlead_cli/commands/{module}.py").is_file(), name
