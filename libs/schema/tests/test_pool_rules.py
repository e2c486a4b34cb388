"""Pool rules: the first match wins, and a tenant that a rule names is bound to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema.tools.pool_rules import HiddenRule, PoolRule, PoolRules

RULES = PoolRules(
    (
        PoolRule("guests", tenants=("guest",)),
        PoolRule("gpu", directories=("/srv/gpu",)),
        PoolRule("big", directories=("/srv/gpu/big", "/srv/big")),
    )
)
NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, max_size=3).map(lambda parts: "/" + "/".join(parts))
RULE = st.builds(
    PoolRule, NAMES, st.lists(NAMES, max_size=2).map(tuple), st.lists(PATHS, max_size=2).map(tuple)
)
ALL_RULES = st.builds(PoolRules, st.lists(RULE, max_size=4).map(tuple), st.just("default"))


@pytest.mark.parametrize(
    ("tenant", "directory", "pool"),
    [
        ("acme", "/srv/gpu", "gpu"),
        ("acme", "/srv/gpu/big", "gpu"),
        ("acme", "/srv/gpu2", "default"),
        ("acme", "/srv/big/x", "big"),
        ("guest", "/srv/gpu", "guests"),
        ("acme", "/", "default"),
    ],
)
def test_the_first_rule_that_matches_names_the_pool(tenant: str, directory: str, pool: str) -> None:
    assert RULES.choose(tenant, directory) == pool


def test_a_tenant_that_a_rule_names_may_use_no_other_pool() -> None:
    assert RULES.find_permitted("guest", "/srv/gpu") == ("guests",)
    assert RULES.find_permitted("acme", "/srv/gpu/big") == ("gpu", "big", "default")
    assert RULES.find_permitted("acme", "/srv/x") == ("default",)


def test_a_pool_whose_rules_all_name_tenants_serves_these_alone() -> None:
    both = PoolRules((*RULES.rules, PoolRule("gpu", tenants=("guest",))))

    assert RULES.tenants_of("guests") == ("guest",)
    assert (RULES.tenants_of("gpu"), both.tenants_of("gpu"), RULES.tenants_of("default")) == (
        (),
        (),
        (),
    )


def test_a_rule_behind_a_wider_one_is_found() -> None:
    narrow, wide = PoolRule("a", directories=("/x/y",)), PoolRule("b", directories=("/x",))

    assert PoolRules((narrow, wide)).find_hidden() is None
    assert PoolRules((wide, narrow)).find_hidden() == HiddenRule(2, 1)
    assert PoolRules((PoolRule("a"), PoolRule("b"))).find_hidden() == HiddenRule(2, 1)
    bound = PoolRule("b", tenants=("t",))
    assert PoolRules((wide, bound)).find_hidden() is None


@given(ALL_RULES, NAMES, PATHS)
def test_every_session_has_one_known_pool_and_may_use_it(
    rules: PoolRules, tenant: str, directory: str
) -> None:
    pool, permitted = rules.choose(tenant, directory), rules.find_permitted(tenant, directory)

    assert pool in rules.names
    assert permitted[0] == pool
    assert set(permitted) <= set(rules.names)
    earlier = [rule for rule in rules.rules if rule.matches(tenant, directory)]
    assert pool == (earlier[0].pool if earlier else "default")


@given(ALL_RULES, NAMES, PATHS)
def test_a_hidden_rule_decides_for_nobody(rules: PoolRules, tenant: str, directory: str) -> None:
    hidden = rules.find_hidden()
    if hidden is None:
        return
    rule, above = rules.rules[hidden.rule - 1], rules.rules[hidden.earlier - 1]

    assert not rule.matches(tenant, directory) or above.matches(tenant, directory)


@given(ALL_RULES, NAMES, PATHS, NAMES)
def test_a_directory_below_matches_what_the_one_above_matches(
    rules: PoolRules, tenant: str, directory: str, name: str
) -> None:
    below = f"{directory.rstrip('/')}/{name}"

    assert all(
        rule.matches(tenant, below) for rule in rules.rules if rule.matches(tenant, directory)
    )
