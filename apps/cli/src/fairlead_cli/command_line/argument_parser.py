"""The command line: a parser of every command that says what a misspelt word may have meant."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Final, NoReturn, cast

from typing_extensions import override

from fairlead_cli.command_line.command_table import COMMANDS
from fairlead_cli.errors import UsageError

EPILOG: Final = """\
start here:
  fairlead demo                     nothing to install or configure
  fairlead up                       uses the key that it finds; then, in another terminal:
  fairlead prompt "Say hello"

`fairlead COMMAND --help` lists the options of a command.
"""


CHOICES_SHOWN_MAX: Final = 8
NUMBERS: Final = ((int, "a whole number"), (float, "a number"))
OPTIONS_AS_WORDS: Final = {"help": "--help", "version": "--version"}
"""What people type as a command, and what it means behind the words that follow."""


class CommandLine(argparse.ArgumentParser):
    """A parser whose mistakes are one line with a suggestion."""

    @override
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.removeprefix('argument ')} (see `{self.prog} --help`)")

    @override
    def _check_value(self, action: argparse.Action, value: object) -> None:
        choices = None if action.choices is None else [str(choice) for choice in action.choices]
        if choices is None or value in choices:
            super()._check_value(action, value)
        else:
            name = action.metavar or "/".join(action.option_strings) or action.dest
            meant = _suggest(str(value), choices) or _list_choices(choices)
            text = f"{name} {str(value)!r} is not known{meant}"
            raise argparse.ArgumentError(None, text)

    @override
    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        wanted = next((words for kind, words in NUMBERS if action.type is kind), None)
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            if wanted is None:
                raise
            name = "/".join(action.option_strings) or action.dest
            reason = f"{name} must be {wanted}, and {arg_string!r} is not"
            raise argparse.ArgumentError(None, reason) from error

    @property
    def actions(self) -> "dict[str | None, CommandLine]":
        """The parsers of the actions of a command, by their names."""
        found = [action.choices for action in self._actions if action.nargs == argparse.PARSER]
        return dict(cast("dict[str | None, CommandLine]", found[0])) if found else {}

    def unknown_words(self, words: Sequence[str]) -> NoReturn:
        """Refuse the first word that no option takes. Raises UsageError."""
        word = words[0]
        if not word.startswith("-"):
            self.error(f"{word!r} is one word too many: put a text with spaces in quotes")
        self.error(f"no option {word}{_suggest(word.partition('=')[0], self.options)}")

    @property
    def options(self) -> Iterable[str]:
        """Every option of this parser."""
        return self._option_string_actions

    def misplaced_option(self, option: str, others: Sequence[str]) -> NoReturn:
        """Refuse an option before the command: each command has its own. Raises UsageError."""
        command = next((word for word in others if word in COMMANDS), None)
        if command is None:
            self.unknown_words([option])
        name = option.partition("=")[0]
        self.error(f"write {name} after the command: fairlead {command} {name}")


class _Version(argparse.Action):
    """Prints the version. The metadata of packages is slow to load, so only this action does it."""

    @override
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        version = import_module("importlib.metadata").version("fairlead")
        parser.exit(message=f"fairlead {version}\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Prints each command and its summary on one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=18, width=100)
        # argparse leaves out the indentation when it measures the names of commands.
        self._action_max_length = 18


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments of one command. Raises UsageError. Help and version end the process."""
    first, others = next(iter(arguments), ""), arguments[1:]
    if first in OPTIONS_AS_WORDS:
        return parse([*others, OPTIONS_AS_WORDS[first]])
    parser, commands = build_parsers(first)
    if first.startswith("-") and first not in parser.options:
        parser.misplaced_option(first, others)
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        chosen = commands[args.command]
        (chosen.actions.get(getattr(args, "action", None)) or chosen).unknown_words(unknown)
    return args


def build_parsers(chosen: str = "") -> tuple[CommandLine, dict[str, CommandLine]]:
    """A parser of the chosen command with its options, else of all commands without options."""
    parser = CommandLine(
        prog="fairlead",
        description="A durable, distributed session runtime for AI agents.",
        epilog=EPILOG,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    parsers = {}
    for name in (chosen,) if chosen in COMMANDS else COMMANDS:
        summary = COMMANDS[name].summary
        description = f"{summary[0].upper()}{summary[1:]}."
        parsers[name] = commands.add_parser(
            name, help=summary, description=description, allow_abbrev=False
        )
        if name == chosen:
            configure(name, parsers[name])
    return parser, parsers


def configure(name: str, parser: argparse.ArgumentParser) -> None:
    """Add the options of a command. Its own module stays unloaded: help is quick."""
    group, _, function = COMMANDS[name].module.partition(".")
    options = import_module(f"fairlead_cli.options.{group}")
    add = cast("Callable[[argparse.ArgumentParser], None]", getattr(options, function))
    add(parser)


def _suggest(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=2, cutoff=0.6)
    return f": did you mean {' or '.join(close)}?" if close else ""


def _list_choices(choices: Sequence[str]) -> str:
    """All choices, if they fit into a line."""
    if len(choices) > CHOICES_SHOWN_MAX:
        return ""
    *others, last = choices
    return f": choose {', '.join(others)} or {last}" if others else f": choose {last}"
