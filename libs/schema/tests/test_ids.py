"""Ids are opaque, have a prefix for their kind, and fit into a subject."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from fairlead_schema import ids

PREFIXES = {
    "SessionId": "ses",
    "MessageId": "msg_",
    "EventId": "evt_",
    "CommitId": "cmt_",
    "PermissionId": "per",
    "QuestionId": "que",
    "RunnerId": "run_",
    "WorkerId": "wkr_",
    "AttemptId": "att_",
}
SAFE = "ABCXYZabcxyz0189_-"
HOSTILE = [
    "a.b",
    "a b",
    "a*",
    ">",
    "a>",
    "a\n",
    "a\r\n",
    "\ta",
    "a\x00",
    "a/b",
    "é",
    "a\N{ZERO WIDTH SPACE}",
    "",
]


def accepts(kind: str, value: object) -> bool:
    try:
        TypeAdapter(getattr(ids, kind)).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(("kind", "prefix"), PREFIXES.items())
def test_an_id_says_its_kind(kind: str, prefix: str) -> None:
    assert accepts(kind, f"{prefix}c05e3f841d27Ab3CdE6fGh9IjK")
    assert not accepts(kind, "xyz_c05e3f841d27Ab3CdE6fGh9IjK")
    assert not accepts(kind, f" {prefix}c05e3f841d27Ab3CdE6fGh9IjK")
    assert not accepts(kind, prefix)


@pytest.mark.parametrize("kind", PREFIXES)
@pytest.mark.parametrize("tail", HOSTILE)
def test_an_id_that_would_break_a_subject_is_refused(kind: str, tail: str) -> None:
    assert not accepts(kind, PREFIXES[kind] + tail)


@pytest.mark.parametrize("kind", PREFIXES)
def test_an_id_is_bounded(kind: str) -> None:
    assert accepts(kind, PREFIXES[kind] + "a" * 120)
    assert not accepts(kind, PREFIXES[kind] + "a" * 121)


@pytest.mark.parametrize("value", [None, 7, ["ses_1"], {"ses_1": 1}])
def test_an_id_is_a_string(value: object) -> None:
    assert not accepts("SessionId", value)


@given(st.text(alphabet=SAFE, min_size=1, max_size=120))
def test_any_safe_tail_makes_a_session_id(tail: str) -> None:
    assert accepts("SessionId", "ses" + tail)


@given(st.text())
def test_an_accepted_session_id_is_one_subject_token(tail: str) -> None:
    value = "ses" + tail

    assert not (accepts("SessionId", value) and set(value) & set(". \t\r\n*>"))


@pytest.mark.parametrize("tail", HOSTILE)
def test_a_tenant_is_one_subject_token(tail: str) -> None:
    assert not accepts("TenantId", tail)


def test_a_tenant_is_bounded() -> None:
    assert accepts("TenantId", ids.DEFAULT_TENANT)
    assert accepts("TenantId", "t" * 64)
    assert not accepts("TenantId", "t" * 65)


def test_a_call_id_is_whatever_the_provider_says_within_bounds() -> None:
    assert accepts("CallId", "toolu_01.a b*>")
    assert accepts("CallId", "c" * 256)
    assert not accepts("CallId", "c" * 257)
    assert not accepts("CallId", "")
