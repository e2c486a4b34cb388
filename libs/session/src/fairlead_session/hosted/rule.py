"""One row of a table: what requests do with one type of hosted content."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from fairlead_session.hosted.provider_secrets import remove_provider_secrets

Place: TypeAlias = Literal["call", "block", "reasoning", "text", "step"]
"""Where a session keeps the content: the result of a call, a block without visible text, the metadata
of reasoning or of text, or the metadata of the step."""
ToSame: TypeAlias = Literal["verbatim", "never"]
ToOthers: TypeAlias = Literal["lowered", "note", "dropped"]
WhenOld: TypeAlias = Literal["whole", "shortened", "ordinary"]
Shorten: TypeAlias = Callable[[Any, str], Any]
"""Takes a value and a note. Returns the value with the note in place of its long texts, or the same
value if its provider has to read it whole."""


@dataclass(frozen=True, slots=True)
class HostedRule:
    """`to_same` is for the model that made the content, `to_others` for every other model.

    `when_old` is for a large result of an old turn: `shortened` keeps the provider's own form,
    `ordinary` makes it the result of an ordinary call.
    """

    type: str
    place: Place
    to_same: ToSame = "verbatim"
    to_others: ToOthers = "lowered"
    lower: Callable[[Any], Any] = remove_provider_secrets
    shorten: Shorten | None = None
    ordinary_when_old: bool = False

    @property
    def when_old(self) -> WhenOld:
        if self.ordinary_when_old:
            return "ordinary"
        return "whole" if self.shorten is None else "shortened"


Table: TypeAlias = Mapping[str, HostedRule]


def new_table(*rules: HostedRule) -> Table:
    """The rules by type."""
    table = MappingProxyType({rule.type: rule for rule in rules})
    assert len(table) == len(rules), "a table has one rule for each type"
    return table


def unknown_rule(type_: str) -> HostedRule:
    """The rule of a type that no table has: whole for its own model, a note for others."""
    return HostedRule(type_, "call", to_others="note")


def replace_texts(value: object, note: str, *names: str) -> object:
    """The object with the note in its first long text of these names, and nothing in the others."""
    if not isinstance(value, dict):
        return value
    changed, left = dict(value), note
    for name in names:
        text = value.get(name)
        if isinstance(text, str) and len(text) > len(note):
            changed[name], left = left, ""
    return changed


def replace_items(value: object, note: str, *names: str) -> object:
    """A list whose objects have their long texts of these names replaced."""
    if not isinstance(value, list | tuple):
        return value
    return [replace_texts(item, note, *names) for item in value]
