"""Titles by a small model: due once, recorded before the request, and never over a person's own."""

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    claimed,
    dispatched,
    given,
    promoted,
    released,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    SessionArchived,
    SessionEvent,
    TextEnded,
    TextStarted,
    TitleEnded,
    TitleRequested,
)
from fairlead_session.info import info
from fairlead_session.input.prompt_title import unnamed_title
from fairlead_session.state.session import Session
from fairlead_session.titles import (
    ATTEMPTS_MAX,
    TitleAnswer,
    end_title,
    is_title_due,
    request_title,
    title_request,
)
from fairlead_session.turn.request import ModelIdentity

SMALL = ModelRef(provider_id="acme", id="small")
UNNAMED = CREATED.model_copy(update={"title": unnamed_title("2026-01-01T00:00:00.000Z")})
ANSWER = (
    TextStarted(assistant_message_id="msg_a", text_id="t"),
    TextEnded(assistant_message_id="msg_a", text_id="t", text="It parses."),
)
LATER = 10**15


def answered(created: SessionEvent = UNNAMED, *more: SessionEvent) -> Session:
    return given(
        created,
        INITIALISED,
        claimed(),
        promoted("msg_1"),
        dispatched(),
        step_started(),
        *ANSWER,
        step_ended(),
        released("idle"),
        *more,
    )


def request(session: Session, id_: str, *, left_before_ms: int = 0) -> tuple[SessionEvent, ...]:
    return request_title(session, id_, SMALL, left_before_ms=left_before_ms)


def test_a_title_is_due_after_the_first_answer_and_set_once() -> None:
    """P-28: the attempt is recorded first; the usage counts; nothing is due afterwards."""
    session = answered()
    assert is_title_due(session, left_before_ms=0)
    session = then(session, *request(session, "att_1"))
    assert not is_title_due(session, left_before_ms=0), "it is being asked for"
    answer = TitleAnswer(' "Fix the\nparser." ', cost=0.5, tokens=Tokens(output=4))

    session = then(session, *end_title(session, "att_1", SMALL, answer))

    told = info(session)
    assert (told.title, told.cost, told.tokens.output) == ("Fix the parser", 0.5, 4)
    assert told.models is not None
    assert [(usage.model.id, usage.requests) for usage in told.models][-1] == ("small", 1)
    assert not is_title_due(session, left_before_ms=LATER)
    assert end_title(session, "att_1", SMALL, answer) == (), "an attempt ends once"


@pytest.mark.parametrize(
    "session",
    [
        given(UNNAMED),
        given(UNNAMED, INITIALISED, claimed(), promoted("msg_1")),
        answered(CREATED),
        answered(UNNAMED.model_copy(update={"parent_id": "ses_0"})),
        answered(UNNAMED, SessionArchived()),
        Session(id="ses_1"),
    ],
)
def test_no_title_is_due_without_an_answer_or_for_a_named_session(session: Session) -> None:
    """P-28: nor for a sub-agent, nor for an archived session."""
    assert not is_title_due(session, left_before_ms=LATER)
    assert request(session, "att_1", left_before_ms=LATER) == ()


def test_an_attempt_that_its_runner_left_is_made_again_once() -> None:
    """P-28: through any number of crashes at most two requests leave, and one title counts."""
    session = answered()
    for number in range(1, ATTEMPTS_MAX + 1):
        assert is_title_due(session, left_before_ms=LATER)
        session = then(session, *request(session, f"att_{number}", left_before_ms=LATER))
    assert not is_title_due(session, left_before_ms=LATER)

    assert end_title(session, "att_1", SMALL, TitleAnswer("late")) == ()
    session = then(session, *end_title(session, "att_2", SMALL, TitleAnswer("in time")))

    assert info(session).title == "in time"


def test_a_failed_title_is_tried_once_more_and_then_the_words_stay() -> None:
    session = answered()
    words = info(session).title
    for number, failure in ((1, "busy"), (2, None)):
        session = then(session, *request(session, f"att_{number}"))
        events = end_title(session, f"att_{number}", SMALL, TitleAnswer("  ", failure=failure))
        assert isinstance(events[0], TitleEnded)
        assert events[0].title is None
        assert events[0].message == (failure or "the model gave no title")
        session = then(session, *events)

    assert info(session).title == words
    assert not is_title_due(session, left_before_ms=LATER)


def test_a_title_that_somebody_chose_meanwhile_stays() -> None:
    """P-28: the user's own title wins, also over a request that is under way."""
    session = then(answered(), TitleRequested(attempt_id="att_1", model=SMALL))
    other = TitleEnded(attempt_id="att_1", model=SMALL, title="Mine", cost=0, tokens=Tokens())
    named = then(session, other, TitleRequested(attempt_id="att_2", model=SMALL))

    (ended,) = end_title(named, "att_2", SMALL, TitleAnswer("Theirs"))

    assert isinstance(ended, TitleEnded)
    assert (ended.title, ended.message) == (None, "somebody has named the session")
    assert info(then(named, ended)).title == "Mine"


def test_the_request_holds_a_bounded_part_of_the_conversation() -> None:
    """P-28: budgeted in what it sends and in what it may answer."""
    identity = ModelIdentity(model=SMALL, api_model="small-1", options={"effort": "low"})
    request = title_request(answered(), identity)

    assert request.model == "small-1"
    assert request.generation.max_tokens is not None
    assert len(str(request.turns)) < 8_000
    assert "It parses." in str(request.turns)
