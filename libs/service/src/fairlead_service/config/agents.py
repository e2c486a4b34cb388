"""Agents and their rules: what is built in, what the file says of all of them, and of each."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from fairlead_schema.permission import Effect, PermissionRule
from fairlead_service.config.section import Section

# Only the resources of these actions are paths; a shell's `~` is the shell's to read.
_PATHS: Final = frozenset({"external_directory", "read", "edit"})
_HOMES: Final = ("~", "$HOME")


class AgentConfig(Section):
    system: str | None = None
    description: str | None = None
    steps: int | None = Field(default=None, gt=0)
    mode: Literal["subagent", "primary", "all"] = "primary"
    hidden: bool = False
    permissions: tuple[PermissionRule, ...] = ()
    recovery: Literal["auto", "ask", "hold"] | None = None
    disabled: bool = False


def _rule(action: str, resource: str, effect: Effect) -> PermissionRule:
    return PermissionRule(action=action, resource=resource, effect=effect)


_SECRETS: Final = (
    _rule("read", "*.env", "ask"),
    _rule("read", "*.env.*", "ask"),
    _rule("read", "*.env.example", "allow"),
)
# Outside the location: temporary files and stored tool output need no question.
_OUTSIDE: Final = (
    _rule("external_directory", "*", "ask"),
    _rule("external_directory", f"{tempfile.gettempdir()}/*", "allow"),
    _rule("external_directory", "fairlead-output:/*", "allow"),
)
DEFAULTS: Final = (
    _rule("*", "*", "allow"),
    *_OUTSIDE,
    _rule("question", "*", "deny"),
    _rule("plan_enter", "*", "deny"),
    _rule("plan_exit", "*", "deny"),
    *_SECRETS,
)
NOTHING: Final = (_rule("*", "*", "deny"),)

BUILT_IN: Final[Mapping[str, AgentConfig]] = {
    "build": AgentConfig(
        description="Works on the project with every tool there is.",
        permissions=(
            *DEFAULTS,
            _rule("question", "*", "allow"),
            _rule("plan_enter", "*", "allow"),
        ),
    ),
    "plan": AgentConfig(
        description="Thinks a change through and writes it down as a plan; edits nothing else.",
        permissions=(
            *DEFAULTS,
            _rule("question", "*", "allow"),
            _rule("plan_exit", "*", "allow"),
            _rule("edit", "*", "deny"),
            _rule("edit", ".fairlead/plans/*.md", "allow"),
        ),
    ),
    "general": AgentConfig(
        description="Takes over a task of its own and reports what came of it.",
        mode="subagent",
        permissions=(*DEFAULTS, _rule("todowrite", "*", "deny")),
    ),
    "explore": AgentConfig(
        description="Looks around and answers questions about what it finds; changes nothing.",
        mode="subagent",
        permissions=(
            *NOTHING,
            *(
                _rule(action, "*", "allow")
                for action in ("read", "glob", "grep", "skill", "webfetch", "websearch")
            ),
            *_OUTSIDE,
            *_SECRETS,
        ),
    ),
}


def effective(
    configured: Mapping[str, AgentConfig],
    everywhere: tuple[PermissionRule, ...],
    *,
    home: str | None = None,
) -> dict[str, AgentConfig]:
    """Every agent there is, each with all its rules in their order.

    First what is built in, then what the configuration says of all agents, then what it says of
    this one. What the file leaves out of a built-in agent stays as it is; a disabled one is gone.
    """
    place = str(Path.home()) if home is None else home
    names = (*BUILT_IN, *(name for name in configured if name not in BUILT_IN))
    found: dict[str, AgentConfig] = {}
    for name in names:
        said = configured.get(name, AgentConfig())
        if said.disabled:
            continue
        given = {field: getattr(said, field) for field in said.model_fields_set}
        built = BUILT_IN.get(name, AgentConfig(permissions=DEFAULTS))
        own = (expanded(rule, place) for rule in (*everywhere, *said.permissions))
        rules = (*built.permissions, *own)
        found[name] = built.model_copy(update={**given, "permissions": rules})
    return found


def expanded(rule: PermissionRule, home: str) -> PermissionRule:
    """A rule about paths with the home directory spelled out."""
    if rule.action not in _PATHS:
        return rule
    for sign in _HOMES:
        if rule.resource == sign or rule.resource.startswith(f"{sign}/"):
            return rule.model_copy(update={"resource": home + rule.resource[len(sign) :]})
    return rule
