"""Splits the text of a shell command into the simple commands that a shell would run.

The reading is strict. Where shells differ or the text hides what runs, the parts are unknown, and
the caller must not take the command for harmless. A text proves nothing about effects.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from fairlead_session.people.shell_programs import (
    GRAMMAR,
    RESERVED,
    TESTS,
    command_starts,
    is_hidden_program,
)

# A longer text would hold up everything else in the process.
LENGTH_MAX: Final = 16_384
PARTS_MAX: Final = 1_000
DEPTH_MAX: Final = 32
PREFIXES_MAX: Final = 16

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")

# Redirections that write nowhere: between open files, and into nothing.
_HARMLESS: Final = re.compile(
    r"\d*([<>]&(\d+|-)|(>>?|<)[ \t]*/dev/null)(?=[\s;&|()<>]|$)", re.ASCII
)
# A parameter without quotes and without another expansion inside.
_PARAMETER: Final = re.compile(r"\$\{[^\"'`\\${}\n]*\}")
_PLAIN: Final = re.compile(r"[\w./:=,@%+-]+")
# Signs by which a shell computes the name of a program. In one shell `=rm` is the path of `rm`.
_HIDDEN: Final = re.compile(r"[$`*?\[~{]|^=")


class UnknownParts(Exception):
    """The text does not show which commands run."""


@dataclass(slots=True)
class _Frame:
    """One level of nesting: the whole text, a subshell, a substitution or a quoted string."""

    closes: str = ""
    word: int | None = None
    """Where the current word begins; None between two words."""
    words: list[str] = field(default_factory=list)
    redirect: int | None = None
    """Where the first redirection of the current simple command begins."""
    names_file: bool = False
    """Whether the next word is the file of a redirection, and no word of the command."""


@lru_cache(maxsize=64)
def command_parts(command: str) -> tuple[str, ...] | None:
    """The simple commands in a text, and the redirections of each. None if the text hides them.

    Blanks are single, and the name of each program stands without quotes, with and without its
    directory. A command behind a prefix like `A=b`, `env` or `sudo` counts by itself too.
    """
    if len(command) > LENGTH_MAX:
        return None
    try:
        return tuple(_Scanner(command).scan())
    except UnknownParts:
        return None


class _Scanner:
    """Reads a text once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._frames = [_Frame()]
        self._parts: dict[str, None] = {}
        self._added = 0

    def scan(self) -> dict[str, None]:
        while self._at < len(self._text):
            if self._frames[-1].closes == '"':
                self._step_quoted()
            else:
                self._step()
        if len(self._frames) > 1:
            raise UnknownParts
        self._end_command()
        return self._parts

    def _step_quoted(self) -> None:
        """One step inside double quotes: only expansions and escapes mean something there."""
        character = self._text[self._at]
        if character == "\\":
            self._at += 2
        elif character == '"':
            self._frames.pop()
            self._at += 1
        else:
            self._step_expansion(character)

    def _step(self) -> None:
        text, at = self._text, self._at
        frame, character = self._frames[-1], text[at]
        if character in " \t":
            self._end_word()
            self._at += 1
        elif character == "#" and frame.word is None:
            if frame.closes:
                # In arithmetic the sign is no comment, and shells disagree about what it is.
                raise UnknownParts
            # A comment ends with its line.
            end = text.find("\n", at)
            self._at = len(text) if end < 0 else end
        elif character in "<>" or text.startswith("&>", at):
            self._redirect()
        elif character in ";&|\n()":
            self._separate(character)
        elif text.startswith("\\\n", at):
            self._at += 2
        else:
            frame.word = at if frame.word is None else frame.word
            self._step_word(character)

    def _step_word(self, character: str) -> None:
        if character == "\\":
            self._at += 2
        elif character == "'":
            end = self._text.find("'", self._at + 1)
            if end < 0:
                raise UnknownParts
            self._at = end + 1
        elif character == '"':
            self._open('"', 1)
        elif self._text.startswith("$'", self._at):
            # Shells disagree about escapes in such quotes.
            raise UnknownParts
        else:
            self._step_expansion(character)

    def _step_expansion(self, character: str) -> None:
        """Enter a substitution, pass a parameter, or pass a plain character."""
        text, at = self._text, self._at
        if character == "`":
            # Quotes inside backquotes need to be read twice.
            raise UnknownParts
        if text.startswith("$(", at):
            self._open(")", 2)
        elif text.startswith("${", at):
            parameter = _PARAMETER.match(text, at)
            if parameter is None:
                raise UnknownParts
            self._at = parameter.end()
        else:
            # A run of characters that mean nothing anywhere is passed in one step.
            plain = _PLAIN.match(text, at + 1)
            self._at = at + 1 if plain is None else plain.end()

    def _open(self, closes: str, length: int) -> None:
        if len(self._frames) > DEPTH_MAX:
            raise UnknownParts
        self._at += length
        self._frames.append(_Frame(closes))

    def _separate(self, character: str) -> None:
        """End a simple command, and enter or leave a subshell or a substitution."""
        self._end_command()
        self._at += 1
        if character == "(":
            self._open(")", 0)
        elif character == ")" and self._frames[-1].closes == ")":
            self._frames.pop()

    def _redirect(self) -> None:
        text, at, frame = self._text, self._at, self._frames[-1]
        if text.startswith(("<<", "&>"), at):
            # Where a here-document ends depends on its quotes. `&>` ends a command in some shells.
            raise UnknownParts
        begin = at
        if frame.word is not None and _is_number(text[frame.word : at]):
            # A number just before the sign belongs to the sign: `2>`.
            begin, frame.word = frame.word, None
        self._end_word()
        harmless = _HARMLESS.match(text, begin)
        if harmless is not None:
            self._at = harmless.end()
            return
        frame.redirect = begin if frame.redirect is None else frame.redirect
        frame.names_file = True
        self._at += 2 if text[at : at + 2] in {">>", ">|", ">&", "<&", "<>"} else 1

    def _end_word(self) -> None:
        frame = self._frames[-1]
        if frame.word is not None:
            if not frame.names_file:
                frame.words.append(self._text[frame.word : self._at])
            frame.word, frame.names_file = None, False

    def _end_command(self) -> None:
        self._end_word()
        frame = self._frames[-1]
        if frame.redirect is not None:
            self._add(self._text[frame.redirect : self._at].split())
        self._add_command(frame.words)
        frame.words, frame.redirect, frame.names_file = [], None, False

    def _add_command(self, words: list[str]) -> None:
        """Add a simple command, and the command behind each prefix of it."""
        starts, seen = [0], set[int]()
        while starts:
            start = _skip_prefixes(words, starts.pop())
            assigns = start < len(words) and _ASSIGNMENT.match(words[start])
            if assigns:
                # An assignment may change what the command behind it does: `PATH=… git`.
                self._add(words[start:])
                starts.append(start + 1)
                continue
            if start in seen or start >= len(words):
                continue
            seen.add(start)
            if len(seen) > PREFIXES_MAX:
                raise UnknownParts
            path = unquote(words[start])
            name = path.rpartition("/")[2] or path
            hidden = _HIDDEN.search(path) and name not in TESTS
            if hidden or is_hidden_program(name, words[start + 1 :]):
                raise UnknownParts
            # A rule may be about the program, or about the one in this directory.
            self._add([name, *words[start + 1 :]])
            self._add([path, *words[start + 1 :]])
            starts += command_starts(name, words, start + 1)

    def _add(self, words: list[str]) -> None:
        self._parts[" ".join(words)] = None
        self._added += 1
        if self._added > PARTS_MAX:
            raise UnknownParts


def unquote(word: str) -> str:
    """The word without quotes and escapes."""
    return re.sub(r"\\(.)|[\"']", r"\1", word.replace("\\\n", ""), flags=re.DOTALL)


def _skip_prefixes(words: list[str], start: int) -> int:
    """The first word from here on that is not reserved. Raises UnknownParts."""
    while start < len(words) and words[start] in RESERVED:
        start += 1
    if start < len(words) and words[start] in GRAMMAR:
        raise UnknownParts
    return start


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()
