"""Permission rules: what an agent may do without asking, what never, and what a person decides."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fairlead_schema.permission import Effect, PermissionRule

ARGUMENT: Final = " *"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a call wants to do, before it may run: an action on some resources.

    `save` are the patterns that an approval for always stands for; without any it holds once.
    """

    action: str
    resources: tuple[str, ...] = ("*",)
    save: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None


def matches(pattern: str, text: str) -> bool:
    """Whether a whole text fits a pattern: `*` is anything, `?` one character, slashes are equal."""
    return _compiled(pattern).fullmatch(text.replace("\\", "/")) is not None


def effect(rules: Iterable[PermissionRule], action: str, resource: str) -> Effect:
    """What the last rule that fits says; nobody having said anything, a person is asked."""
    said: Effect = "ask"
    for rule in rules:
        if matches(rule.action, action) and matches(rule.resource, resource):
            said = rule.effect
    return said


def judge(
    rules: tuple[PermissionRule, ...], saved: tuple[PermissionRule, ...], need: Need
) -> Effect:
    """What becomes of a need. What is denied by rule stays denied, whatever was approved before."""
    if any(effect(rules, need.action, one) == "deny" for one in need.resources):
        return "deny"
    approved = (*rules, *saved)
    asked = any(effect(approved, need.action, one) != "allow" for one in need.resources)
    return "ask" if asked else "allow"


def is_hidden(rules: Iterable[PermissionRule], action: str) -> bool:
    """Whether a tool with this action is not even shown: the last word on it denies everything."""
    last = None
    for rule in rules:
        if matches(rule.action, action):
            last = rule
    return last is not None and last.effect == "deny" and last.resource == "*"


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    normal = pattern.replace("\\", "/")
    optional = normal.endswith(ARGUMENT)
    head = normal.removesuffix(ARGUMENT) if optional else normal
    wild = {"*": ".*", "?": "."}
    body = "".join(wild.get(one) or re.escape(one) for one in head)
    return re.compile(body + ("( .*)?" if optional else ""), re.DOTALL)
