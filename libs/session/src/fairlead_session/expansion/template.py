"""Templates of commands: arguments take the places of `$ARGUMENTS` and `$1`, commands that of !`…`."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# The template is split before arguments are filled in, so that no argument adds a command.
_SHELL: Final = re.compile(r"!`([^`]+)`")
_ALL: Final = "ARGUMENTS"
_PLACE: Final = re.compile(r"\$(ARGUMENTS|[1-9][0-9]?)(?![A-Za-z0-9_])")
SPLIT_LENGTH_MAX: Final = 16 * 1024
"""Quotes in longer arguments do not count: to look for them takes time, and everybody waits meanwhile."""
_OUTPUT: Final = re.compile(r"\(the output of `[^`]*` stands above\)")


@dataclass(frozen=True, slots=True)
class FilledTemplate:
    """The text of a template with its arguments, and the commands whose output stands before it."""

    text: str
    shells: tuple[str, ...] = ()


def fill_template(template: str, arguments: str, *, length_max: int) -> FilledTemplate | int:
    """Fill in the arguments. Without a place for them they follow the template.

    A text above the limit is not built: the result is its length.
    """
    words = _words_by_place(template, arguments)
    values = {
        place: arguments if place == _ALL else " ".join(given) for place, given in words.items()
    }
    # Arguments inside a command are words of that command, and never more.
    quoted = {place: shlex.join(given) for place, given in words.items()}
    parts = _SHELL.split(template)
    length = sum(
        _filled_length(part, quoted if index % 2 else values) for index, part in enumerate(parts)
    )
    if length > length_max:
        return length
    shells: list[str] = []
    texts: list[str] = []
    for index, part in enumerate(parts):
        if index % 2:
            command = _fill(part, quoted)
            shells.append(command)
            texts.append(f"(the output of `{command}` stands above)")
        else:
            texts.append(_fill(part, values))
    text = "".join(texts)
    if arguments and not words:
        text = f"{text.rstrip()}\n\n{arguments}"
    return FilledTemplate(text, tuple(shells)) if len(text) <= length_max else len(text)


def _words_by_place(template: str, arguments: str) -> dict[str, list[str]]:
    """The words that each place of a template gets. The highest number takes all that are left."""
    places = set(_PLACE.findall(template))
    words = _split(arguments) if places else []
    last = max((int(place) for place in places - {_ALL}), default=0)
    return {place: _words_at(place, words, last) for place in places}


def _words_at(place: str, words: list[str], last: int) -> list[str]:
    if place == _ALL:
        return words
    number = int(place)
    return words[number - 1 :] if number == last else words[number - 1 : number]


def _filled_length(part: str, values: Mapping[str, str]) -> int:
    growth = (len(values[place[1]]) - len(place[0]) for place in _PLACE.finditer(part))
    return len(part) + sum(growth)


def _fill(part: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: values[place[1]], part)


def is_in_output_note(text: str, place: int) -> bool:
    """Whether a place of a filled text is inside the words that stand for a command's output."""
    return any(note.start() <= place < note.end() for note in _OUTPUT.finditer(text))


def _split(arguments: str) -> list[str]:
    if len(arguments) > SPLIT_LENGTH_MAX:
        return arguments.split()
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()  # A quote is not closed: an apostrophe, for example.
