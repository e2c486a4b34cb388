"""Directives inside a prompt: `[[sim: chunks=20 delay_ms=5 answer="hello"]]`.

Fields are `name=value`, quoted as in a shell. `;` separates the turns of a tool loop, and `tool=NAME`
with an optional `args=JSON` after it asks for a call, as often as it is written. `search=QUERY` and
`run=CODE`, each with an optional `found=TEXT` after it, are tools that the provider runs itself.
"""

import re
import shlex
from dataclasses import dataclass, field

FIELDS = frozenset(
    {
        *("answer", "reasoning", "chunks", "delay_ms", "first_byte_ms", "finish", "times"),
        *("status", "error", "code", "retry_after"),
        *("cut", "drop", "stall", "malformed", "fail"),
        *("input_tokens", "output_tokens", "cached_tokens"),
    }
)
_NUMBERS = FIELDS - {"answer", "reasoning", "finish", "error", "code"}
_DIRECTIVE = re.compile(r"\[\[sim:(.*?)\]\]", re.DOTALL)


class BadDirective(ValueError):
    """A directive that says nothing we know: mend the prompt."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a directive, its numbers checked."""

    fields: dict[str, str] = field(default_factory=dict)
    calls: tuple[tuple[str, str], ...] = ()
    hosted: tuple[tuple[str, str, str], ...] = ()

    def has(self, name: str) -> bool:
        return name in self.fields

    def text(self, name: str) -> str | None:
        return self.fields.get(name)

    def number(self, name: str) -> float | None:
        return float(self.fields[name]) if name in self.fields else None

    def whole(self, name: str) -> int | None:
        return int(float(self.fields[name])) if name in self.fields else None


def turns(text: str) -> tuple[Turn, ...] | None:
    """The turns of the text's last directive, or None without one. Raises BadDirective."""
    found = _DIRECTIVE.findall(text)
    if not found:
        return None
    return read(found[-1])


def read(script: str) -> tuple[Turn, ...]:
    """The turns of a directive without its brackets. Raises BadDirective."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars=";")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise BadDirective(f"Unreadable directive: {error}") from error
    turns: list[list[str]] = [[]]
    for word in words:
        if word == ";":
            turns.append([])
        else:
            turns[-1].append(word)
    return tuple(_turn(turn) for turn in turns)


def without(text: str) -> str:
    """The text with its directives taken out."""
    return _DIRECTIVE.sub("", text)


def _turn(words: list[str]) -> Turn:
    fields: dict[str, str] = {}
    calls: list[tuple[str, str]] = []
    hosted: list[tuple[str, str, str]] = []
    for word in words:
        name, _, value = word.partition("=")
        if name == "tool":
            calls.append((value, "{}"))
        elif name == "args" and calls:
            calls[-1] = (calls[-1][0], value)
        elif name in {"search", "run"}:
            hosted.append((name, value, ""))
        elif name == "found" and hosted:
            hosted[-1] = (*hosted[-1][:2], value)
        elif name in FIELDS:
            fields[name] = _checked(name, value)
        else:
            raise BadDirective(f"Unknown directive field: {word}")
    return Turn(fields, tuple(calls), tuple(hosted))


def _checked(name: str, value: str) -> str:
    if name in _NUMBERS and re.fullmatch(r"\d+(?:\.\d+)?", value) is None:
        raise BadDirective(f"Directive field {name} is not a number: {value}")
    return value
