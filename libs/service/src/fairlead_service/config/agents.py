"""Agents and their permission rules: built in, configured for all agents, and configured for one."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from fairlead_schema.catalog import ModelRef
from fairlead_schema.permission import Effect, PermissionRule
from fairlead_service.config.section import Directory, Section

# Only the resources of these actions are paths. A shell expands `~` itself.
_PATHS: Final = frozenset({"external_directory", "read", "edit"})
_HOMES: Final = ("~", "$HOME")


class AgentConfig(Section):
    system: str | None = None
    instructions_file: Directory | None = None
    model: str | None = Field(default=None, pattern=r"^[^/]+/.+$")
    variant: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)
    description: str | None = None
    steps: int | None = Field(default=None, gt=0)
    mode: Literal["subagent", "primary", "all"] = "primary"
    hidden: bool = False
    permissions: tuple[PermissionRule, ...] = ()
    recovery: Literal["auto", "ask", "hold"] | None = None
    disabled: bool = False

    def model_ref(self) -> ModelRef | None:
        """The agent's own model, which holds unless the session has chosen one."""
        if self.model is None:
            return None
        provider_id, model_id = self.model.split("/", 1)
        return ModelRef(provider_id=provider_id, id=model_id, variant=self.variant)


def _rule(action: str, resource: str, effect: Effect) -> PermissionRule:
    return PermissionRule(action=action, resource=resource, effect=effect)


_SECRETS: Final = (
    _rule("read", "*.env", "ask"),
    _rule("read", "*.env.*", "ask"),
    _rule("read", "*.env.example", "allow"),
)
# Temporary files and stored tool output lie outside the location, and need no permission.
_OUTSIDE: Final = (
    _rule("external_directory", "*", "ask"),
    _rule("external_directory", f"{tempfile.gettempdir()}/*", "allow"),
    _rule("external_directory", "fairlead-output:/*", "allow"),
)
DEFAULTS: Final = (
    _rule("*", "*", "allow"),
    # Nobody here has read what the tools of a server do.
    _rule("mcp:*", "*", "ask"),
    *_OUTSIDE,
    _rule("question", "*", "deny"),
    *_SECRETS,
)
DENY_ALL: Final = (_rule("*", "*", "deny"),)
# Only these actions change nothing. A tool that is new here stays denied.
_LOOKING: Final = (
    *DENY_ALL,
    *(
        _rule(action, "*", "allow")
        for action in ("read", "glob", "grep", "skill", "webfetch", "websearch")
    ),
    *_OUTSIDE,
    *_SECRETS,
)

BUILT_IN: Final[Mapping[str, AgentConfig]] = {
    "build": AgentConfig(
        description="Works on the project with every tool there is.",
        permissions=(*DEFAULTS, _rule("question", "*", "allow")),
    ),
    "plan": AgentConfig(
        description="Thinks a change through and writes it down as a plan; changes nothing else.",
        permissions=(
            *_LOOKING,
            _rule("question", "*", "allow"),
            _rule("todowrite", "*", "allow"),
            # The other sub-agents may run commands.
            _rule("task", "explore", "allow"),
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
        permissions=_LOOKING,
    ),
}


def agents_in_force(
    configured: Mapping[str, AgentConfig],
    everywhere: tuple[PermissionRule, ...],
    *,
    home: str | None = None,
) -> dict[str, AgentConfig]:
    """Every agent, each with all its rules in their order.

    Built-in rules come first, then the rules for all agents, then the rules of the agent. A built-in
    agent keeps every setting that the file leaves out. A disabled agent is not there.
    """
    home = str(Path.home()) if home is None else home
    names = (*BUILT_IN, *(name for name in configured if name not in BUILT_IN))
    agents: dict[str, AgentConfig] = {}
    for name in names:
        config = configured.get(name, AgentConfig())
        if config.disabled:
            continue
        changes = {field: getattr(config, field) for field in config.model_fields_set}
        base = BUILT_IN.get(name, AgentConfig(permissions=DEFAULTS))
        added = (expand_home(rule, home) for rule in (*everywhere, *config.permissions))
        rules = (*base.permissions, *added)
        agents[name] = base.model_copy(update={**changes, "permissions": rules})
    return agents


def expand_home(rule: PermissionRule, home: str) -> PermissionRule:
    """The rule with the home directory in place of `~` or `$HOME`, if its resource is a path."""
    if rule.action not in _PATHS:
        return rule
    for sign in _HOMES:
        if rule.resource == sign or rule.resource.startswith(f"{sign}/"):
            return rule.model_copy(update={"resource": home + rule.resource[len(sign) :]})
    return rule
