"""A turn's request: who speaks, what the model is told, how the provider recognises the session."""

import pytest
from libs.session.tests.conftest import CREATED, INITIALISED, MODEL, given, promoted

from fairlead_schema.provider.request import Generation, TextPart, UserTurn
from fairlead_session.turn.request import ModelIdentity, build, cache_key

IDENTITY = ModelIdentity(MODEL, "acme-fast-1", system="Be careful.", output_tokens_max=99)
HEX = "0123456789abcdef" * 4


def test_a_request_speaks_with_the_agents_words_and_the_baseline() -> None:
    """Q-07, F-46: system parts are the agent's own words, then the baseline."""
    request = build(given(CREATED, INITIALISED, promoted("msg_1", "hi")), IDENTITY)

    assert request.system == ("Be careful.", "Today is Monday")
    assert request.model == "acme-fast-1"
    assert request.turns == (UserTurn((TextPart("hi"),)),)
    assert request.generation == Generation(max_tokens=99)


def test_empty_system_parts_are_dropped() -> None:
    """F-46: neither a silent agent nor an empty baseline becomes a part."""
    silent = ModelIdentity(MODEL, "m", system="")
    empty = INITIALISED.model_copy(update={"baseline": ()})

    assert build(given(CREATED, INITIALISED), silent).system == ("Today is Monday",)
    assert build(given(CREATED, empty), silent).system == ()


def test_every_request_names_its_session() -> None:
    """D-38: two headers carry the session's id."""
    headers = build(given(CREATED, INITIALISED), IDENTITY).headers

    assert headers == {"x-session-affinity": "ses_1", "X-Session-Id": "ses_1"}


def test_a_child_names_its_parent_too() -> None:
    """D-38: children add the parent's id."""
    child = CREATED.model_copy(update={"parent_id": "ses_0"})

    assert build(given(child, INITIALISED), IDENTITY).headers["x-parent-session-id"] == "ses_0"


@pytest.mark.parametrize(
    ("session_id", "key"),
    [
        ("ses_1", "ses_1"),
        (f"ses_{HEX}", HEX),
        (f"ses_{HEX[:-1]}", None),
        (f"ses_{HEX.upper()}", None),
    ],
    ids=["short", "64 hex", "63 hex", "upper case"],
)
def test_the_cache_key_is_the_session_id_where_it_fits(session_id: str, key: str | None) -> None:
    """D-39: `ses_` and 64 hex characters lose the prefix; no key is longer than 64."""
    cache_key_ = cache_key(session_id)

    assert cache_key_ == (key or cache_key_)
    assert len(cache_key_) <= 64
    assert cache_key_ == cache_key(session_id)


def test_the_request_carries_the_cache_key() -> None:
    """D-39: the key is the session's."""
    assert build(given(CREATED, INITIALISED), IDENTITY).cache_key == "ses_1"


def test_a_model_brings_its_own_headers_and_options() -> None:
    """O-31: laid over the request; the session's own headers win."""
    identity = ModelIdentity(
        MODEL, "m", headers={"x-beta": "1", "X-Session-Id": "?"}, options={"effort": 1}
    )

    request = build(given(CREATED, INITIALISED), identity)

    assert request.options == {"effort": 1}
    assert (request.headers["x-beta"], request.headers["X-Session-Id"]) == ("1", "ses_1")


@pytest.mark.parametrize("model", ["claude-opus-4-8", "gpt-5.5", "gemini-3-pro", "anything"])
def test_a_request_adds_no_words_for_a_family_of_models(model: str) -> None:
    """O-34: only the agent and the baseline speak, and the baseline has the base instructions."""
    request = build(
        given(CREATED, INITIALISED, promoted("msg_1", "hi")), ModelIdentity(MODEL, model)
    )

    assert request.system == ("Today is Monday",)
    assert request.turns == (UserTurn((TextPart("hi"),)),)
    assert request.options == {}
    assert (request.tool_choice, request.generation) == ("auto", Generation())
