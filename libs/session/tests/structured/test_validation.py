"""Structured output is judged in bounded time, and whatever numbers a model writes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libs.session.tests.conftest import PROPERTY

from fairlead_session.structured.validation import find_violations

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.5, "", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


def field(**rules: object) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": rules}}


def test_many_objects_are_compared_in_linear_time() -> None:
    """P-17: pair by pair this took the runner's whole process for minutes."""
    items = [{"number": number, "inner": [number]} for number in range(20_000)]
    schema = field(type="array", uniqueItems=True)

    assert find_violations(schema, {"a": items}) == ()
    assert find_violations(schema, {"a": [*items, items[-1]]}) == ("a: its items are not unique",)


@PROPERTY
@given(st.lists(VALUES, max_size=4))
def test_items_are_unique_if_no_two_are_equal_json(items: list[Any]) -> None:
    """1 is 1.0 in JSON, and true is neither."""

    def kind(value: object) -> object:
        if isinstance(value, list):
            return [kind(item) for item in value]
        if isinstance(value, dict):
            return {key: kind(item) for key, item in value.items()}
        return ("bool", value) if isinstance(value, bool) else value

    kinds = [kind(item) for item in items]
    unique = all(one != other for at, one in enumerate(kinds) for other in kinds[:at])

    found = find_violations(field(type="array", uniqueItems=True), {"a": items})

    assert (found == ()) is unique


@pytest.mark.parametrize(
    ("factor", "number", "fits"),
    [
        (0.5, 10**400, True),
        (3, 10**400, False),
        (0.5, 1.25, False),
        (2, 4.0, True),
        (0.1, json.loads("NaN"), False),
        (0.1, json.loads("Infinity"), False),
        (2, True, True),
    ],
)
def test_a_multiple_is_judged_for_every_number(factor: float, number: float, *, fits: bool) -> None:
    """P-17: a number that no float holds ended the turn with a defect."""
    found = find_violations(field(multipleOf=factor), {"a": number})

    assert (found == ()) is fits
