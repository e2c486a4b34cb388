"""Finds the words of a text that may name something: `/command` at its beginning, `@name` anywhere."""

import re
from typing import Final, NamedTuple

MENTIONS_MAX: Final = 64
"""How many mentions of one prompt count. A pasted text may hold any number of `@`."""

_COMMAND: Final = re.compile(r"/([A-Za-z0-9][A-Za-z0-9._-]{0,63})(?=\s|$)")
# An `@` inside a word belongs to an address or a version, and names nothing.
_MENTION: Final = re.compile(
    r"(?<![^\s(\[{\"'`])@(?:\"([^\"\n]{1,1024})\"|([A-Za-z0-9_.~/][^\s@\"'`()\[\]{}<>,;!?]*))"
)
_TRAILING: Final = ".:"


class Token(NamedTuple):
    """A word that may name something, and where it stands in its text, with its sign."""

    name: str
    start: int
    end: int


def find_command(text: str) -> Token | None:
    """The command at the beginning of a text. Whether a command has this name is not known here."""
    found = _COMMAND.match(text)
    return None if found is None else Token(found[1], 0, found.end())


def find_mentions(text: str) -> tuple[Token, ...]:
    """The words after an `@`, in order. A dot or colon at the end belongs to the sentence.

    A name with spaces stands in double quotes.
    """
    tokens = []
    for found in _MENTION.finditer(text):
        if found[1] is not None:
            tokens.append(Token(found[1], found.start(), found.end()))
        elif name := found[2].rstrip(_TRAILING):
            tokens.append(Token(name, found.start(), found.start() + 1 + len(name)))
    return tuple(tokens[:MENTIONS_MAX])
