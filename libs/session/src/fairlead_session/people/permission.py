"""Permission rules: each action is allowed, denied, or left to a person."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from fairlead_schema.permission import Effect, PermissionRule, SavedPermission
from fairlead_session.state.calls import Grant

ARGUMENT: Final = " *"

AgentRules: TypeAlias = Callable[[str], tuple[PermissionRule, ...]]
"""The rules of an agent, by its name."""


@dataclass(frozen=True, slots=True)
class Need:
    """One action on some resources that a call must be permitted before it begins.

    `save` holds the patterns that an approval for always saves. Without patterns nothing is saved.
    """

    action: str
    resources: tuple[str, ...] = ("*",)
    save: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """A rule forbids the call. No approval changes that. The message is for the model."""

    message: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A person decides about this need before the call begins."""

    need: Need


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches: `*` is any text, `?` one character. Slashes are equal."""
    return _compile(pattern).fullmatch(text.replace("\\", "/")) is not None


def effect(rules: Iterable[PermissionRule], action: str, resource: str) -> Effect:
    """The effect of the last rule that matches. Without a matching rule a person is asked."""
    last: Effect = "ask"
    for rule in rules:
        if matches(rule.action, action) and matches(rule.resource, resource):
            last = rule.effect
    return last


def judge(
    rules: tuple[PermissionRule, ...], saved: tuple[PermissionRule, ...], need: Need
) -> Effect:
    """The effect of all rules on a need. A saved approval never overrides a denial."""
    if any(effect(rules, need.action, resource) == "deny" for resource in need.resources):
        return "deny"
    all_rules = (*rules, *saved)
    if all(effect(all_rules, need.action, resource) == "allow" for resource in need.resources):
        return "allow"
    return "ask"


def permit(
    rules: tuple[PermissionRule, ...],
    saved: tuple[PermissionRule, ...],
    grants: tuple[Grant, ...],
    needs: tuple[Need, ...],
) -> Denied | Ask | None:
    """What stops a call with these needs from running. None if nothing does.

    All denials come first, so that nobody is asked about a call that cannot run.
    """
    for need in needs:
        if judge(rules, (), need) == "deny":
            return Denied(f"Permission denied: {need.action} (rule: {_denying_rule(rules, need)})")
    for need in needs:
        if judge(rules, saved, need) == "ask" and not _is_granted(grants, need):
            return Ask(need)
    return None


def approval_rules(saved: Iterable[SavedPermission]) -> tuple[PermissionRule, ...]:
    """Saved approvals as rules. They follow all other rules."""
    return tuple(
        PermissionRule(action=approval.action, resource=approval.resource, effect="allow")
        for approval in saved
    )


def is_hidden(rules: Iterable[PermissionRule], action: str) -> bool:
    """Whether the model does not see a tool with this action: its last rule denies everything."""
    last = None
    for rule in rules:
        if matches(rule.action, action):
            last = rule
    return last is not None and last.effect == "deny" and last.resource == "*"


def _is_granted(grants: tuple[Grant, ...], need: Need) -> bool:
    return any(
        grant.action == need.action and set(need.resources) <= set(grant.resources)
        for grant in grants
    )


def _denying_rule(rules: tuple[PermissionRule, ...], need: Need) -> str:
    """The last rule about a resource that is denied."""
    denied = next(
        resource for resource in need.resources if effect(rules, need.action, resource) == "deny"
    )
    rule = next(
        rule
        for rule in reversed(rules)
        if matches(rule.action, need.action) and matches(rule.resource, denied)
    )
    return f"{rule.action} {rule.resource} {rule.effect}"


@lru_cache(maxsize=4096)
def _compile(pattern: str) -> re.Pattern[str]:
    normal = pattern.replace("\\", "/")
    optional = normal.endswith(ARGUMENT)
    head = normal.removesuffix(ARGUMENT) if optional else normal
    wildcards = {"*": ".*", "?": "."}
    body = "".join(wildcards.get(character) or re.escape(character) for character in head)
    return re.compile(body + ("( .*)?" if optional else ""), re.DOTALL)
