"""Permission rules: each action is allowed, denied, or left to a person."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fairlead_schema.permission import Effect, PermissionRule, SavedPermission
from fairlead_session.people.command_parts import command_parts, unquote
from fairlead_session.people.wildcard import matches
from fairlead_session.state.calls import Grant

# The resources of these actions are commands for a shell.
COMMANDS: Final = frozenset({"bash"})
STRICTNESS: Final[tuple[Effect, ...]] = ("allow", "ask", "deny")

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


def effect(rules: Iterable[PermissionRule], action: str, resource: str) -> Effect:
    """The effect of the last rule that matches. Without a matching rule a person is asked.

    A command also has the effect of each of its parts, and the strictest effect counts. Only a rule
    with the exact text of the command is about all of it at once.
    """
    relevant = tuple(rule for rule in rules if matches(rule.action, action))
    last = _last_match(relevant, resource)
    if action not in COMMANDS or (last is not None and last.resource == resource):
        return _effect_of(last)
    parts = command_parts(resource)
    if parts is None:
        # The text hides what runs, so it may be anything that some rule is about.
        hidden: Effect = "ask" if any(rule.effect != "allow" for rule in relevant) else "allow"
        return _strictest((_effect_of(last), hidden))
    return _strictest((_effect_of(last), *(_effect_of(_rule_of_part(relevant, p)) for p in parts)))


def is_approved(saved: Iterable[PermissionRule], action: str, resource: str) -> bool:
    """Whether a saved approval covers a resource. An approved command is that text and no other."""
    return any(
        matches(approval.action, action)
        and (
            approval.resource == resource
            if action in COMMANDS
            else matches(approval.resource, resource)
        )
        for approval in saved
    )


def judge(
    rules: tuple[PermissionRule, ...], saved: tuple[PermissionRule, ...], need: Need
) -> Effect:
    """The effect of all rules on a need. A saved approval never overrides a denial."""
    effects = {resource: effect(rules, need.action, resource) for resource in need.resources}
    if "deny" in effects.values():
        return "deny"
    if all(
        its_effect == "allow" or is_approved(saved, need.action, resource)
        for resource, its_effect in effects.items()
    ):
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
    """The last rule about a resource that is denied, or about the part of a command that is."""
    relevant = tuple(rule for rule in rules if matches(rule.action, need.action))
    for resource in need.resources:
        parts = command_parts(resource) if need.action in COMMANDS else None
        for rule in (
            _last_match(relevant, resource),
            *(_rule_of_part(relevant, part) for part in parts or ()),
        ):
            if rule is not None and rule.effect == "deny":
                return f"{rule.action} {rule.resource} {rule.effect}"
    raise AssertionError("a denied need has a rule that denies")


def _last_match(rules: tuple[PermissionRule, ...], text: str) -> PermissionRule | None:
    return next((rule for rule in reversed(rules) if matches(rule.resource, text)), None)


def _rule_of_part(rules: tuple[PermissionRule, ...], part: str) -> PermissionRule | None:
    """The last rule about a part of a command.

    A shell takes the quotes off, so a later and stricter rule about the words without them counts:
    `git "push"` is `git push`.
    """
    rule, plain = _last_match(rules, part), unquote(part)
    if plain == part:
        return rule
    later = _last_match(rules if rule is None else rules[rules.index(rule) + 1 :], plain)
    if later is None or _strictest((_effect_of(rule), later.effect)) == _effect_of(rule):
        return rule
    return later


def _effect_of(rule: PermissionRule | None) -> Effect:
    return "ask" if rule is None else rule.effect


def _strictest(effects: tuple[Effect, ...]) -> Effect:
    return max(effects, key=STRICTNESS.index)
