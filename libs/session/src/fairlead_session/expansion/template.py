"""Templates of commands: arguments take the places of `$ARGUMENTS` and `$1`, commands that of !`…`."""

import re
import shlex
from dataclasses import dataclass
from typing import Final

# The template is split before arguments are filled in, so that no argument adds a command.
_SHELL: Final = re.compile(r"!`([^`]+)`")
_PLACE: Final = re.compile(r"\$(ARGUMENTS|[1-9][0-9]?)(?![A-Za-z0-9_])")


_OUTPUT: Final = re.compile(r"\(the output of `[^`]*` stands above\)")


@dataclass(frozen=True, slots=True)
class FilledTemplate:
    """The text of a template with its arguments, and the commands whose output stands before it."""

    text: str
    shells: tuple[str, ...] = ()


def fill_template(template: str, arguments: str) -> FilledTemplate:
    """Fill in the arguments. Without a place for them they follow the template."""
    words = _split(arguments)
    last = max((int(n) for n in _PLACE.findall(template) if n != "ARGUMENTS"), default=0)
    shells: list[str] = []
    texts: list[str] = []
    for index, part in enumerate(_SHELL.split(template)):
        if index % 2:
            command = _PLACE.sub(lambda place: _quote(place[1], words, last), part)
            shells.append(command)
            texts.append(f"(the output of `{command}` stands above)")
        else:
            texts.append(_PLACE.sub(lambda place: _value(place[1], arguments, words, last), part))
    text = "".join(texts)
    if arguments and _PLACE.search(template) is None:
        text = f"{text.rstrip()}\n\n{arguments}"
    return FilledTemplate(text, tuple(shells))


def is_in_output_note(text: str, place: int) -> bool:
    """Whether a place of a filled text is inside the words that stand for a command's output."""
    return any(note.start() <= place < note.end() for note in _OUTPUT.finditer(text))


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()  # A quote is not closed: an apostrophe, for example.


def _value(place: str, arguments: str, words: list[str], last: int) -> str:
    return arguments if place == "ARGUMENTS" else " ".join(_words_at(int(place), words, last))


def _quote(place: str, words: list[str], last: int) -> str:
    """Arguments inside a command are words of that command, and never more."""
    return shlex.join(words if place == "ARGUMENTS" else _words_at(int(place), words, last))


def _words_at(number: int, words: list[str], last: int) -> list[str]:
    """The argument with a number. The highest number of a template takes all that are left."""
    return words[number - 1 :] if number == last else words[number - 1 : number]
