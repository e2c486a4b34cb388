"""A provider that pauses in the middle of its own work is asked again."""

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    admitted,
    dispatched,
    given,
    promoted,
    step_ended,
    step_started,
)

from fairlead_session.next_move import DrainLimits, Rest, TakeTurn, next_move


@pytest.mark.parametrize(("finish", "owed"), [("pause", True), ("stop", False), ("length", False)])
def test_only_a_pause_owes_another_turn(finish: str, owed: bool) -> None:  # noqa: FBT001
    """A5 of PROVIDERS 6: upstream took a pause for the end."""
    session = given(
        CREATED,
        INITIALISED,
        admitted("msg_1"),
        promoted("msg_1"),
        dispatched(),
        step_started(),
        step_ended(finish=finish),
    )

    assert session.execution.owed is owed
    assert next_move(session) == (TakeTurn((), step=2) if owed else Rest("idle"))


def test_a_provider_that_only_pauses_reaches_the_limit_of_turns() -> None:
    """E-22: a pause counts as a turn, so it cannot go on for ever."""
    session = given(
        CREATED, INITIALISED, admitted("msg_1"), promoted("msg_1"), dispatched(), step_started(),
        step_ended(finish="pause"),
    )  # fmt: skip

    move = next_move(session, DrainLimits(turns_max=1))

    assert isinstance(move, Rest)
    assert move.reason == "turn-limit"
