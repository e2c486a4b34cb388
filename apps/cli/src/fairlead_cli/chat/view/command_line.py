"""What a person typed: a prompt, a command of this program, or a command for the shell."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NamedTuple, TypeAlias


class CommandHelp(NamedTuple):
    """The arguments of a command, and what it does."""

    arguments: str
    summary: str


COMMANDS: Final = {
    "model": CommandHelp("[PROVIDER/MODEL]", "use another model from here on"),
    "agent": CommandHelp("[NAME]", "use another agent from here on"),
    "compact": CommandHelp("", "replace the history by a summary"),
    "undo": CommandHelp("", "take the last prompt and its file changes back"),
    "redo": CommandHelp("", "bring back what the last undo took"),
    "resume": CommandHelp("", "run what waits, or one more turn"),
    "sessions": CommandHelp("[TEXT]", "go on with another session"),
    "new": CommandHelp("", "begin a new session"),
    "rename": CommandHelp("TITLE", "give the session a title"),
    "unarchive": CommandHelp("", "bring the session back from the archive"),
    "explain": CommandHelp("", "say why the session works or rests"),
    "export": CommandHelp("[FILE]", "write the session to a file"),
    "cost": CommandHelp("", "show what the session has used"),
    "attach": CommandHelp("FILE", "attach a file of this machine to the next prompt"),
    "drop": CommandHelp("", "withdraw what waits: attachments, then the last pending prompt"),
    "help": CommandHelp("", "show commands and keys"),
    "quit": CommandHelp("", "leave; the session goes on"),
}


@dataclass(frozen=True, slots=True)
class PromptLine:
    """Text for the model. The server expands its own commands and mentions in it."""

    text: str


@dataclass(frozen=True, slots=True)
class ShellLine:
    """A command to run in the location of the session."""

    command: str


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command of this program."""

    name: str
    argument: str


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """A command that neither this program nor the server has."""

    name: str
    message: str


TypedLine: TypeAlias = PromptLine | ShellLine | SlashCommand | UnknownCommand


def parse_line(text: str, server_commands: frozenset[str] = frozenset()) -> TypedLine:
    """What the text asks for. A path such as `/etc/hosts` is text for the model."""
    stripped = text.strip()
    if stripped.startswith("!") and stripped[1:].strip():
        return ShellLine(stripped[1:].strip())
    word, _, argument = stripped.partition(" ")
    name = word[1:]
    if not word.startswith("/") or not name.isidentifier() or "\n" in word:
        return PromptLine(text)
    if name in COMMANDS:
        return SlashCommand(name, argument.strip())
    if name in server_commands:
        return PromptLine(text)
    near = get_close_matches(name, [*COMMANDS, *server_commands], n=1)
    hint = f"did you mean /{near[0]}?" if near else "/help lists the commands."
    return UnknownCommand(name, f"There is no command /{name}: {hint}")


def help_lines() -> list[tuple[str, str]]:
    """Every command with its arguments, and what it does."""
    return [
        (f"/{name} {about.arguments}".rstrip(), about.summary) for name, about in COMMANDS.items()
    ]
