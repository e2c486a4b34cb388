"""Directives inside a prompt: `[[sim: chunks=20 delay_ms=5 answer="hello"]]`.

Fields are `name=value`, quoted as in a shell, and `;` separates the turns of a tool loop. Each `tool=NAME`
is a call; `args=JSON` after it sets its arguments. `search=QUERY` and `run=CODE` are tools that the
provider runs itself; `found=TEXT` after one sets its output.
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
    """The directive has an unknown field or a bad value: correct the prompt."""


@dataclass(frozen=True, slots=True)
class DirectiveTurn:
    """One turn of a directive; its numbers are checked."""

    fields: dict[str, str] = field(default_factory=dict)
    calls: tuple[tuple[str, str], ...] = ()
    hosted_tools: tuple[tuple[str, str, str], ...] = ()

    def has(self, name: str) -> bool:
        return name in self.fields

    def text(self, name: str) -> str | None:
        return self.fields.get(name)

    def number(self, name: str) -> float | None:
        return float(self.fields[name]) if name in self.fields else None

    def integer(self, name: str) -> int | None:
        return int(float(self.fields[name])) if name in self.fields else None


def find_turns(text: str) -> tuple[DirectiveTurn, ...] | None:
    """The turns of the last directive in a text; None without a directive. Raises BadDirective."""
    directives = _DIRECTIVE.findall(text)
    if not directives:
        return None
    return parse_turns(directives[-1])


def parse_turns(script: str) -> tuple[DirectiveTurn, ...]:
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
    return tuple(_parse_turn(turn) for turn in turns)


def strip_directives(text: str) -> str:
    """The text without its directives."""
    return _DIRECTIVE.sub("", text)


def _parse_turn(words: list[str]) -> DirectiveTurn:
    fields: dict[str, str] = {}
    calls: list[tuple[str, str]] = []
    hosted_tools: list[tuple[str, str, str]] = []
    for word in words:
        name, _, value = word.partition("=")
        if name == "tool":
            calls.append((value, "{}"))
        elif name == "args" and calls:
            calls[-1] = (calls[-1][0], value)
        elif name in {"search", "run"}:
            hosted_tools.append((name, value, ""))
        elif name == "found" and hosted_tools:
            hosted_tools[-1] = (*hosted_tools[-1][:2], value)
        elif name in FIELDS:
            fields[name] = _check_value(name, value)
        else:
            raise BadDirective(f"Unknown directive field: {word}")
    return DirectiveTurn(fields, tuple(calls), tuple(hosted_tools))


def _check_value(name: str, value: str) -> str:
    if name in _NUMBERS and re.fullmatch(r"\d+(?:\.\d+)?", value) is None:
        raise BadDirective(f"Directive field {name} is not a number: {value}")
    return value
