"""Completion scripts of shells, written from the parsers of the commands."""

import argparse
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from fairlead_cli.command_line.argument_parser import build_parsers, configure
from fairlead_cli.command_line.command_table import COMMANDS


class CommandWords(NamedTuple):
    """What may follow the name of a command."""

    options: dict[str, str]
    """Each long option with its help."""
    words: tuple[str, ...]
    """The choices of its first argument. Without any, files are offered."""


def command_words() -> dict[str, CommandWords]:
    """The words of every command."""
    _parser, parsers = build_parsers()
    for name, parser in parsers.items():
        configure(name, parser)
    return {name: _words(parser) for name, parser in parsers.items()}


def _words(parser: argparse.ArgumentParser) -> CommandWords:
    options, words = dict[str, str](), list[str]()
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            words += action.choices
            for inner in action.choices.values():
                options |= _words(inner).options
        elif not action.option_strings:
            words += [str(choice) for choice in action.choices or ()]
        else:
            help_text = (action.help or "").split(";")[0].split("(")[0].strip()
            options |= {name: help_text for name in action.option_strings if name[:2] == "--"}
    return CommandWords(options, tuple(words))


def bash_script(commands: Mapping[str, CommandWords]) -> str:
    """The script of bash."""
    cases = "\n".join(
        f'    {name}) words="{" ".join((*entry.words, *entry.options))}" ;;'
        for name, entry in commands.items()
    )
    return _BASH.format(names=" ".join(commands), cases=cases)


def zsh_script(commands: Mapping[str, CommandWords]) -> str:
    """The script of zsh."""
    names = "\n".join(f"    {_quote(f'{name}:{COMMANDS[name].summary}')}" for name in commands)
    cases = "\n".join(
        f"    {name}) offered=({' '.join(_quote(word) for word in (*entry.words, *entry.options))}) ;;"
        for name, entry in commands.items()
    )
    return _ZSH.format(names=names, cases=cases)


def fish_script(commands: Mapping[str, CommandWords]) -> str:
    """The script of fish."""
    lines = [
        f"complete -c fairlead -n __fish_use_subcommand -f -a {name}"
        f" -d {_quote(COMMANDS[name].summary)}"
        for name in commands
    ]
    for name, entry in commands.items():
        condition = f"complete -c fairlead -n '__fish_seen_subcommand_from {name}'"
        if entry.words:
            lines.append(f"{condition} -f -a {_quote(' '.join(entry.words))}")
        lines += [
            f"{condition} -l {option[2:]} -d {_quote(text)}"
            for option, text in entry.options.items()
        ]
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SCRIPTS: Final[dict[str, Callable[[Mapping[str, CommandWords]], str]]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}

_BASH: Final = """\
_fairlead() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{names} --help --version" -- "$current"))
    return
  fi
  case "$command" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ "${{#COMPREPLY[@]}}" -eq 0 ]; then
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _fairlead fairlead
"""
_ZSH: Final = """\
#compdef fairlead
_fairlead() {{
  local -a commands offered
  commands=(
{names}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  case "$words[2]" in
{cases}
  esac
  compadd -- $offered
  _files
}}
compdef _fairlead fairlead
"""
