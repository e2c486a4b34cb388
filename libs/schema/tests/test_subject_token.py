"""Principals in subjects: every name has one token, and a token that names nobody grants nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema import subjects
from fairlead_schema.identity.subject_token import (
    UNREADABLE,
    parse_principal_token,
    principal_consumer_part,
    principal_token,
)

NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=251)
CONSUMER_LENGTH_MAX = 255


@given(NAMES)
def test_the_name_of_a_user_survives_a_subject(rest: str) -> None:
    """B8: dots, slashes and wildcards of a name stay inside one token."""
    name = f"user:{rest}"
    subject = subjects.as_principal("acme", name, "session.get")

    assert subjects.principal_of(subject) == name
    assert len(subject.split(".")) == 6
    assert not set(subject) & set("*> ")
    assert len(subjects.feed_consumer("t" * 64, name)) <= CONSUMER_LENGTH_MAX
    assert not set(principal_consumer_part(name)) & set("./*>\\ ")


@pytest.mark.parametrize("name", ["local", "key:1a2b", "service:billing"])
def test_other_names_are_tokens_as_they_are(name: str) -> None:
    """Clients and configurations of earlier releases use them."""
    assert principal_token(name) == parse_principal_token(name) == name
    assert subjects.feed_consumer("acme", name) == f"feed-acme-{name}"


@pytest.mark.parametrize(
    "token", ["user:", "user:a", "user:YQ==", "user:YR", "user:!!", "user:https://x/y", "user:_w"]
)
def test_a_token_that_is_no_encoded_name_names_nobody(token: str) -> None:
    """B8: it must not become a caller, and not a service that acts for itself either."""
    assert parse_principal_token(token) == UNREADABLE
    assert subjects.principal_of(f"fairlead.as.acme.{token}.session.get") is not None
