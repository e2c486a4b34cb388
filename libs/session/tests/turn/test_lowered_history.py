"""A history that is extended equals one that is built anew, and only new messages are lowered."""

from dataclasses import replace

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    dispatched,
    given,
    promoted,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import TextEnded, TextStarted
from fairlead_session.compaction.estimate import estimate_request
from fairlead_session.state.session import Session
from fairlead_session.turn.lowered_history import lower_history
from fairlead_session.turn.prefix import prefix
from fairlead_session.turn.request import LAST_STEP_TURN, ModelIdentity, build

IDENTITY = ModelIdentity(MODEL, "fast-1", system="Be careful.")
TEXTS = ("one", "zwölf", '\N{GRINNING FACE} "quoted"\n', "")


def after_turn(session: Session, number: int, text: str) -> Session:
    id_ = f"msg_a{number}"
    return then(
        session,
        promoted(f"msg_{number}", text or "x"),
        dispatched(id_),
        step_started(id_),
        TextStarted(assistant_message_id=id_, text_id="t"),
        TextEnded(assistant_message_id=id_, text_id="t", text=text),
        step_ended(id_),
    )


@pytest.fixture
def sessions() -> list[Session]:
    """A session after each of its turns."""
    grown = [given(CREATED, INITIALISED)]
    for number, text in enumerate(TEXTS * 3):
        grown.append(after_turn(grown[-1], number, text))
    return grown


def test_an_extended_history_equals_a_new_one(sessions: list[Session]) -> None:
    known = None
    for session in sessions:
        known = lower_history(session, MODEL, known)

        assert known == lower_history(session, MODEL)


def test_only_new_messages_are_lowered(sessions: list[Session]) -> None:
    before = lower_history(sessions[-2], MODEL)

    after = lower_history(sessions[-1], MODEL, before)

    assert all(old is new for old, new in zip(before.turns, after.turns, strict=False))
    assert len(after.turns) == len(before.turns) + 1 + bool(TEXTS[-1])


def test_another_model_lowers_everything_anew(sessions: list[Session]) -> None:
    other = ModelRef(provider_id="other", id="model")

    switched = lower_history(sessions[-1], other, lower_history(sessions[-1], MODEL))

    assert switched == lower_history(sessions[-1], other)


def test_a_history_that_became_shorter_is_built_anew(sessions: list[Session]) -> None:
    long = lower_history(sessions[-1], MODEL)

    assert lower_history(sessions[3], MODEL, long) == lower_history(sessions[3], MODEL)


@pytest.mark.parametrize("final", [False, True])
def test_estimate_and_prefix_are_those_of_the_whole_request(
    sessions: list[Session], *, final: bool
) -> None:
    for session in sessions:
        history = lower_history(session, MODEL)
        request = build(session, IDENTITY, history=history)
        if final:
            request = replace(request, turns=(*request.turns, LAST_STEP_TURN))

        measured = (len(history.turns), history.units)
        assert estimate_request(request, measured) == estimate_request(request)
        assert prefix(request, history) == prefix(request)
