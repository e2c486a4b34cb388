"""Finds what a person wants completed before the cursor, and puts the choice there."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from fairlead_cli.chat.view.command_line import COMMANDS
from fairlead_cli.chat.view.plain_text import clean

CompletionKind: TypeAlias = Literal["command", "file"]
CHOICES_MAX: Final = 8
_PLAIN_MENTION: Final = re.compile(r"[A-Za-z0-9_.~/][^\s@\"'`()\[\]{}<>,;!?]*(?<![.:])")
"""Names that the server finds without quotes."""
_BEFORE_MENTION: Final = frozenset(" \t\n([{\"'`")


@dataclass(frozen=True, slots=True)
class CompletionTarget:
    """A word before the cursor that can be completed."""

    kind: CompletionKind
    query: str
    start: int
    """The column where the word begins, with its `/` or `@`."""


@dataclass(frozen=True, slots=True)
class CompletionChoice:
    """One way to complete a word."""

    text: str
    """What replaces the word."""
    note: str = ""


def find_target(line: str, column: int, *, is_first_line: bool) -> CompletionTarget | None:
    """The word to complete in a line, up to the cursor; None if there is none."""
    before = line[:column]
    if is_first_line and before.startswith("/") and " " not in before:
        return CompletionTarget("command", before[1:], 0)
    start = before.rfind("@")
    if start < 0 or (start > 0 and before[start - 1] not in _BEFORE_MENTION):
        return None
    query = before[start + 1 :].removeprefix('"')
    is_quoted = before[start + 1 : start + 2] == '"'
    if not is_quoted and any(character.isspace() for character in query):
        return None
    return CompletionTarget("file", query, start)


def command_choices(
    query: str, server_commands: Iterable[tuple[str, str]] = ()
) -> list[CompletionChoice]:
    """The commands that begin with a query, or else contain it."""
    known = {name: about.summary for name, about in COMMANDS.items()} | dict(server_commands)
    begin = [name for name in known if name.startswith(query)]
    inside = [name for name in known if query in name and name not in begin]
    return [CompletionChoice(f"/{name}", known[name]) for name in (*begin, *inside)]


def file_choice(path: str, *, is_directory: bool = False) -> CompletionChoice | None:
    """A path as a mention; None for a name that no mention can have. A directory may go on."""
    name = f"{path}/" if is_directory else path
    if '"' in name or clean(name) != name or "\n" in name:
        return None
    if _PLAIN_MENTION.fullmatch(name):
        return CompletionChoice(f"@{name}")
    return CompletionChoice(f'@"{name}' if is_directory else f'@"{name}"')


def agent_choices(query: str, agents: Iterable[tuple[str, str]]) -> list[CompletionChoice]:
    """The sub-agents whose name begins with a query: a mention gives them a task."""
    begin = [(name, about) for name, about in agents if query and name.startswith(query)]
    return [CompletionChoice(f"@{name}", about or "sub-agent") for name, about in begin]


def complete(
    line: str, column: int, target: CompletionTarget, choice: CompletionChoice
) -> tuple[str, int]:
    """The line with the choice in it, and where the cursor is then."""
    end = "" if choice.text.endswith("/") or line[column:].startswith(" ") else " "
    head = line[: target.start] + choice.text + end
    return head + line[column:], len(head)
