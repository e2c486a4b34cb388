"""Agents and their rules: built in, for all, for one, in that order."""

from pathlib import Path

import pytest

from fairlead_schema.catalog import ModelRef
from fairlead_schema.permission import Effect, PermissionRule
from fairlead_service.config.agents import BUILT_IN, AgentConfig, agents_in_force, expand_home
from fairlead_service.config.configuration import Config, load
from fairlead_service.config.providers import ModelConfig, ModelVariant

RULES = """
permissions = [ { action = "bash", resource = "rm *", effect = "ask" } ]

[agent.build]
system = "Be careful."
permissions = [ { action = "bash", resource = "rm -i *", effect = "allow" } ]

[agent.review]
description = "Reads along."

[agent.explore]
disabled = true
"""


def rule(action: str, resource: str, effect: Effect) -> PermissionRule:
    return PermissionRule(action=action, resource=resource, effect=effect)


def last(config: Config, agent: str | None, count: int) -> tuple[PermissionRule, ...]:
    return config.rules(agent)[-count:]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "fairlead.toml"
    path.write_text(RULES)
    return load(path, {})


def test_rules_stand_in_the_order_built_in_global_own(config: Config) -> None:
    """K-30: the agent's own word is the last."""
    rules = config.rules("build")

    assert rules == (
        *BUILT_IN["build"].permissions,
        rule("bash", "rm *", "ask"),
        rule("bash", "rm -i *", "allow"),
    )
    assert config.rules("plan")[-1] == rule("bash", "rm *", "ask")


def test_an_agent_that_is_not_built_in_begins_with_the_defaults(config: Config) -> None:
    """K-29, K-30: allow everything, with the same exceptions."""
    assert config.rules("review")[0] == rule("*", "*", "allow")
    assert rule("question", "*", "deny") in config.rules("review")


def test_what_the_file_leaves_out_of_a_built_in_agent_stays(config: Config) -> None:
    """K-29: only the settings in the file change."""
    build = config.agents["build"]

    assert (build.system, build.description) == (
        "Be careful.",
        BUILT_IN["build"].description,
    )
    assert config.agents["general"].mode == "subagent"


def test_a_disabled_agent_is_gone(config: Config) -> None:
    """K-32: and may nothing, like any other that is not there."""
    assert "explore" not in config.agents
    assert config.rules("explore") == (rule("*", "*", "deny"),)


def test_an_agent_that_is_not_there_may_nothing_and_nobody_is_the_default(config: Config) -> None:
    """K-10, K-11: unknown denies everything; unnamed is the default agent."""
    assert config.rules("ghost") == (rule("*", "*", "deny"),)
    assert config.rules(None) == config.rules("build")


@pytest.mark.parametrize(
    ("action", "resource", "becomes"),
    [
        ("read", "~/notes/*", "/home/me/notes/*"),
        ("edit", "$HOME/x", "/home/me/x"),
        ("external_directory", "~", "/home/me"),
        ("external_directory", "/a/~/b", "/a/~/b"),
        ("read", "~other/x", "~other/x"),
        ("bash", "cat ~/x", "cat ~/x"),
        ("bash", "~/bin/run", "~/bin/run"),
        ("*", "~/x", "~/x"),
    ],
)
def test_home_is_spelled_out_for_paths_alone(action: str, resource: str, becomes: str) -> None:
    """K-31: a shell's resources stay as they were written."""
    assert expand_home(rule(action, resource, "allow"), "/home/me").resource == becomes


def test_homes_of_configured_rules_are_spelled_out() -> None:
    """K-31: in rules for all and in an agent's own."""
    own = AgentConfig(permissions=(rule("read", "~/b", "ask"),))

    agents = agents_in_force({"build": own}, (rule("read", "$HOME/a", "ask"),), home="/h")

    assert [rule.resource for rule in agents["build"].permissions[-2:]] == ["/h/a", "/h/b"]


def test_a_configuration_without_agents_asks_about_nothing_harmless() -> None:
    """K-29: everything is allowed to `build` but what leaves the location or may be a secret."""
    rules = Config().rules("build")

    assert rules[0] == rule("*", "*", "allow")
    assert {rule.action for rule in rules if rule.effect == "ask"} == {
        "external_directory",
        "read",
        "mcp:*",
    }


def test_an_agent_overrides_the_default_variant_and_a_chosen_variant_overrides_the_agent() -> None:
    """O-31, O-33, P-21: what was said for fewer requests counts more; tables are merged."""
    model = ModelConfig(
        headers={"x": "model"},
        options={"seed": 1, "reasoning": {"effort": "low", "summary": "auto"}},
        default_variant="high",
        variant={
            "high": ModelVariant(headers={"x": "high"}, body={"reasoning": {"effort": "high"}}),
            "max": ModelVariant(headers={"x": "max"}, body={"reasoning": {"effort": "max"}}),
        },
    )
    agent = ModelVariant(headers={"x": "agent"}, body={"reasoning": {"effort": "none"}, "seed": 2})

    by_default, by_choice = model.with_variant(None, agent), model.with_variant("max", agent)

    assert by_default == ModelVariant(
        headers={"x": "agent"}, body={"seed": 2, "reasoning": {"effort": "none", "summary": "auto"}}
    )
    assert by_choice == ModelVariant(
        headers={"x": "max"}, body={"seed": 2, "reasoning": {"effort": "max", "summary": "auto"}}
    )
    assert model.with_variant("tiny", agent) is None


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ({"model": "acme/none"}, "has no .provider.acme.model. section"),
        ({"model": "acme/fast", "variant": "none"}, "has no variant 'none'"),
        ({"variant": "high"}, "has no model"),
    ],
)
def test_an_agent_whose_model_does_not_exist_is_a_mistake(
    agent: dict[str, str], reason: str
) -> None:
    """P-21: noticed before anything starts."""
    provider = {"protocol": "openai-chat", "base_url": "http://127.0.0.1:1", "model": {"fast": {}}}

    with pytest.raises(ValueError, match=reason):
        Config.model_validate({"provider": {"acme": provider}, "agent": {"build": agent}})


def test_an_agents_model_holds_between_the_sessions_choice_and_the_default() -> None:
    """O-33: for sessions that chose none."""
    models: dict[str, object] = {"fast": {}, "deep": {"variant": {"high": {}}}}
    provider = {"protocol": "openai-chat", "base_url": "http://127.0.0.1:1", "model": models}
    config = Config.model_validate(
        {
            "default_model": "acme/fast",
            "provider": {"acme": provider},
            "agent": {"plan": {"model": "acme/deep", "variant": "high"}},
        }
    )
    deep = ModelRef(provider_id="acme", id="deep", variant="high")
    fast = ModelRef(provider_id="acme", id="fast")

    assert config.model_of("plan", None) == deep
    assert config.model_of("plan", fast) == fast
    assert config.model_of("build", None) == fast
    assert config.model_of(None, None) == fast
