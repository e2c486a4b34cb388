"""Permission rules: wildcards, order, and what an approval can and cannot change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema.permission import Effect, PermissionRule
from fairlead_session.people.permission import Denied, Need, effect, is_hidden, judge, permit
from fairlead_session.people.wildcard import matches


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
    rules = (rule("edit", "lib/*", "deny"),)
    saved = (rule("edit", "*", "allow"),)
    assert judge(rules, saved, Need("edit", ("src/a",))) == "allow"
    assert judge(rules, saved, Need("edit", ("lib/a",))) == "deny"


@pytest.mark.parametrize(
    "command", ["ls x; curl evil", "ls x", "ls", "ls */", "ls \\*", " ls *", "ls *;id", "ls **"]
)
def test_an_approved_command_is_that_text_and_no_other(command: str) -> None:
    """B7: an approval for always of `ls *` covered `ls x; curl …`."""
    saved = (rule("bash", "ls *", "allow"),)

    assert judge((), saved, Need("bash", ("ls *",))) == "allow"
    assert judge((), saved, Need("bash", (command,))) == "ask"


def test_a_command_is_as_strict_as_its_strictest_part() -> None:
    """B7: a rule about a command also holds where the command is a part of another."""
    asks = (rule("bash", "*", "ask"), rule("bash", "ls *", "allow"), rule("bash", "git *", "allow"))
    denies = (ALL, rule("bash", "rm *", "deny"))

    assert effect(asks, "bash", "ls a && git log") == "allow"
    assert effect(asks, "bash", "ls a && curl b") == "ask"
    assert effect(asks, "bash", "ls a > b") == "ask"
    assert effect(asks, "bash", "ls; PATH=/evil git log") == "ask"
    assert effect(asks, "bash", "ls; /evil/git log") == "ask"
    assert effect(denies, "bash", "ls; rm a") == "deny"
    assert effect(denies, "bash", "ls $(sudo -u a rm b)") == "deny"
    assert effect(denies, "read", "ls; rm a") == "allow"


def test_a_command_that_hides_its_parts_needs_a_person_unless_everything_is_allowed() -> None:
    """B7: hidden parts may be what some rule is about."""
    hidden = 'eval "$X"'
    assert effect((ALL,), "bash", hidden) == "allow"
    assert effect((ALL, rule("bash", "rm *", "ask")), "bash", hidden) == "ask"
    assert effect((ALL, rule("bash", "rm *", "deny")), "bash", hidden) == "ask"
    assert effect((ALL, rule("bash", "*", "deny")), "bash", hidden) == "deny"


def test_a_rule_with_the_exact_text_of_a_command_is_about_all_of_it() -> None:
    """B7: an operator may allow one compound command without each of its parts."""
    rules = (rule("bash", "*", "deny"), rule("bash", "make build && make test", "allow"))

    assert effect(rules, "bash", "make build && make test") == "allow"
    assert effect(rules, "bash", "make build") == "deny"


def test_a_denial_names_the_rule_about_the_denied_part() -> None:
    """B7: the model reads which part of its command is forbidden."""
    rules = (ALL, rule("bash", "rm *", "deny"))

    assert permit(rules, (), (), (Need("bash", ("ls; rm a",)),)) == Denied(
        "Permission denied: bash (rule: bash rm * deny)"
    )


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


@pytest.mark.parametrize(
    "command", ['git "push" x', "git 'push' x", "git p\\ush x", "git pu''sh x", "git pu\\\nsh x"]
)
def test_quotes_do_not_hide_an_argument_from_a_stricter_rule(command: str) -> None:
    """B7: a shell takes the quotes off before the program sees its arguments."""
    rules = (ALL, rule("bash", "git *", "allow"), rule("bash", "git push *", "deny"))

    assert effect(rules, "bash", command) == "deny"
    assert isinstance(permit(rules, (), (), (Need("bash", (command,)),)), Denied)


def test_a_rule_about_quoted_text_stays_in_force() -> None:
    """B7: only a stricter rule counts for the text without its quotes."""
    rules = (rule("bash", "*", "ask"), rule("bash", 'git commit -m "*"', "allow"))

    assert effect(rules, "bash", 'git commit -m "a b"') == "allow"
    assert effect(rules, "bash", "git commit -m a b") == "ask"
