"""The prefix of requests: what one turn sent opens the next, and a break names its source."""

from dataclasses import replace

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    NONE,
    dispatched,
    given,
    promoted,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    CompactionEnded,
    ContextReplaced,
    RevertCommitted,
    SessionEvent,
    TextEnded,
    TextStarted,
)
from fairlead_schema.provider.request import ModelRequest, TextPart, ToolDefinition, UserTurn
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.state.session import Session
from fairlead_session.turn.prefix import (
    broken_part,
    broken_since_last_request,
    expected_cached_tokens,
    fingerprint,
    prefix,
)
from fairlead_session.turn.request import LAST_STEP_TURN, ModelIdentity, build
from fairlead_session.turn.stream_calls import Offer

IDENTITY = ModelIdentity(MODEL, "fast-1", system="Be careful.")
ONE, TWO = (UserTurn((TextPart(text),)) for text in ("one", "two"))
TOOL = ToolDefinition("read", "Reads.", {"type": "object"})
FIRST = ModelRequest("m", system=("Be careful.",), turns=(ONE,), tools=(TOOL,))
SECOND = replace(FIRST, turns=(ONE, TWO))


def with_request(
    session: Session, identity: ModelIdentity = IDENTITY, tokens: Tokens = NONE
) -> Session:
    """The session after a request that left a fingerprint."""
    attempt = dispatched().model_copy(
        update={"request_hash": fingerprint(build(session, identity))}
    )
    text_events = (
        TextStarted(assistant_message_id="msg_a", text_id="t"),
        TextEnded(assistant_message_id="msg_a", text_id="t", text="hey"),
    )
    return then(session, attempt, step_started(), *text_events, step_ended(tokens=tokens))


def test_a_fingerprint_names_its_parts() -> None:
    system, tools, messages = fingerprint(SECOND).split()

    assert (system[:4], tools[:6], messages[:7]) == ("sys:", "tools:", "msgs:2:")
    assert fingerprint(FIRST).split()[:2] == [system, tools]


@pytest.mark.parametrize(
    ("after", "source"),
    [
        (SECOND, None),
        (FIRST, None),
        (replace(SECOND, system=("Be bold.",)), "system"),
        (replace(SECOND, tools=()), "tools"),
        (replace(SECOND, turns=(TWO, ONE)), "messages"),
        (replace(SECOND, turns=()), "messages"),
        (replace(SECOND, system=(), tools=(), turns=()), "tools"),
    ],
    ids=["longer", "the same", "system", "tools", "messages", "shorter", "everything"],
)
def test_a_break_names_the_first_part_that_changed(after: ModelRequest, source: str | None) -> None:
    """Providers read tools, then system, then messages: the first that differs costs the rest."""
    assert broken_part(fingerprint(FIRST), prefix(after), epoch_changed=False) == source


def test_a_new_epoch_begins_anew_and_strange_words_say_nothing() -> None:
    other = prefix(replace(SECOND, system=("Be bold.",)))

    assert broken_part(fingerprint(FIRST), other, epoch_changed=True) is None
    assert broken_part("an older form", other, epoch_changed=False) is None


def test_words_that_urge_a_last_answer_are_no_history() -> None:
    """E-23: the final step's own words are not in the next request."""
    session = given(CREATED, INITIALISED, promoted("msg_1"))

    final = build(session, IDENTITY, Offer(final=True))

    assert prefix(final).messages == prefix(build(session, IDENTITY)).messages


def test_a_final_step_that_offers_no_tools_is_no_break_before_or_after_it() -> None:
    """E-23: tools left out on purpose; a changed system or history is still told."""
    final = replace(SECOND, turns=(ONE, LAST_STEP_TURN), tools=(), tool_choice="none")
    bold = replace(final, system=("Be bold.",))

    assert broken_part(fingerprint(FIRST), prefix(final), epoch_changed=False) is None
    assert broken_part(fingerprint(final), prefix(SECOND), epoch_changed=False) is None
    assert broken_part(fingerprint(FIRST), prefix(bold), epoch_changed=False) == "system"
    assert broken_part(fingerprint(SECOND), prefix(final), epoch_changed=False) == "messages"


def test_a_session_that_grows_keeps_its_prefix() -> None:
    session = with_request(given(CREATED, INITIALISED, promoted("msg_1")))

    grown = then(session, promoted("msg_2"))

    assert broken_since_last_request(grown, prefix(build(grown, IDENTITY)), "build", MODEL) is None
    assert thaw(freeze(grown)) == grown


def test_an_unbroken_prefix_lets_expect_all_of_the_last_request_in_the_cache() -> None:
    """What the provider counted of it; a new epoch, a break or another model expects nothing."""
    session = with_request(given(CREATED, INITIALISED, promoted("msg_1")), tokens=Tokens(input=70))
    now, slow = prefix(build(session, IDENTITY)), MODEL.model_copy(update={"id": "slow"})

    assert expected_cached_tokens(session, now, "build", MODEL) == 70
    assert expected_cached_tokens(session, now, "build", slow) == 0
    assert expected_cached_tokens(session, prefix(FIRST), "build", MODEL) == 0
    assert expected_cached_tokens(given(CREATED, INITIALISED), now, "build", MODEL) == 0


def test_other_words_of_the_same_agent_are_a_break() -> None:
    session = with_request(given(CREATED, INITIALISED, promoted("msg_1")))

    now = prefix(build(session, replace(IDENTITY, system="Be bold.")))

    assert broken_since_last_request(session, now, "build", MODEL) == "system"
    assert broken_since_last_request(session, now, "plan", MODEL) is None
    assert (
        broken_since_last_request(session, now, "build", MODEL.model_copy(update={"id": "slow"}))
        is None
    )


@pytest.mark.parametrize(
    "event",
    [
        ContextReplaced(baseline=INITIALISED.baseline, snapshot={}, reason="moved"),
        CompactionEnded(message_id="msg_c", reason="auto", text="sum", recent="rec"),
        RevertCommitted(message_id="msg_1"),
    ],
    ids=["epoch", "compaction", "revert"],
)
def test_what_begins_history_anew_is_no_break(event: SessionEvent) -> None:
    session = then(with_request(given(CREATED, INITIALISED, promoted("msg_1"))), event)

    now = prefix(ModelRequest("m", system=("New.",), turns=(TWO,)))

    assert broken_since_last_request(session, now, "build", MODEL) is None


def test_before_any_request_nothing_can_break() -> None:
    session = given(CREATED, INITIALISED, promoted("msg_1"), dispatched())

    assert session.requests.last is None
    assert broken_since_last_request(session, prefix(FIRST), "build", MODEL) is None
