"""Permission rules: wildcards, order, and what an approval can and cannot change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema.permission import Effect, PermissionRule
from fairlead_session.people.permission import Need, effect, is_hidden, judge, matches


def rule(action: str, resource: str, effect: Effect) -> PermissionRule:
    return PermissionRule(action=action, resource=resource, effect=effect)


ALL = rule("*", "*", "allow")


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*", "any/thing\nat all", True),
        ("src/*.py", "src/a/b.py", True),
        ("src/?.py", "src/a.py", True),
        ("src/?.py", "src/ab.py", False),
        ("src", "src/a", False),
        ("SRC", "src", False),
        ("src\\*", "src/a", True),
        ("src/*", "src\\a", True),
        ("a.c", "abc", False),
        ("[ab]", "a", False),
        ("", "", True),
    ],
)
def test_wildcards(pattern: str, text: str, *, fits: bool) -> None:
    """K-03: anchored, `*` crosses slashes and lines, `?` is one character, case counts."""
    assert matches(pattern, text) is fits


@pytest.mark.parametrize(
    ("text", "fits"), [("git", True), ("git status", True), ("gitk", False), ("git ", True)]
)
def test_an_argument_may_be_missing(text: str, *, fits: bool) -> None:
    """K-04: a pattern that ends in space and star also fits without the argument."""
    assert matches("git *", text) is fits


@given(st.text())
def test_a_text_without_wildcards_fits_itself(text: str) -> None:
    """K-03: nothing but the two wildcards is special."""
    plain = text.replace("*", "").replace("?", "")
    assert matches(plain, plain)
    assert matches("*", text)


def test_the_last_rule_that_fits_wins() -> None:
    """K-01: order decides, over all rulesets together."""
    rules = (ALL, rule("bash", "rm *", "deny"), rule("bash", "rm -i *", "ask"))
    assert effect(rules, "bash", "ls") == "allow"
    assert effect(rules, "bash", "rm a") == "deny"
    assert effect(rules, "bash", "rm -i a") == "ask"


def test_no_rule_asks() -> None:
    """K-02, K-33: where nobody said anything a person is asked, for a shell as for anything."""
    assert effect((), "read", "a") == "ask"
    assert judge((rule("read", "*", "allow"),), (), Need("bash", ("ls",))) == "ask"


def test_several_resources_are_as_strict_as_the_strictest() -> None:
    """K-05: any deny denies, else any ask asks, else all is allowed."""
    rules = (ALL, rule("edit", "b", "ask"), rule("edit", "c", "deny"))
    assert judge(rules, (), Need("edit", ("a",))) == "allow"
    assert judge(rules, (), Need("edit", ("a", "b"))) == "ask"
    assert judge(rules, (), Need("edit", ("a", "b", "c"))) == "deny"


def test_an_approval_answers_an_ask_and_never_a_denial() -> None:
    """K-06, K-07: saved approvals come after the rules, except where those deny."""
    rules = (rule("bash", "rm *", "deny"),)
    saved = (rule("bash", "*", "allow"),)
    assert judge(rules, saved, Need("bash", ("ls",))) == "allow"
    assert judge(rules, saved, Need("bash", ("rm a",))) == "deny"


def test_one_action_does_not_stand_for_another() -> None:
    """K-27: reading is allowed, leaving the location is not."""
    rules = (rule("read", "*", "allow"),)
    assert judge(rules, (), Need("external_directory", ("/etc/*",))) == "ask"


def test_a_tool_is_hidden_by_a_last_word_that_denies_everything() -> None:
    """J-11, J-13: a later allowance for some resource shows it again."""
    denied = (ALL, rule("edit", "*", "deny"))
    assert is_hidden(denied, "edit")
    assert not is_hidden(denied, "read")
    assert not is_hidden((*denied, rule("edit", "docs/*", "allow")), "edit")
    assert not is_hidden((ALL, rule("edit", "docs/*", "deny")), "edit")
    assert not is_hidden((), "edit")
