"""One sentence for every state a session can be in."""

from typing import get_args

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    admitted,
    claimed,
    dispatched,
    given,
    promoted,
    released,
    step_started,
)

from fairlead_schema.events import (
    ExecutionReleased,
    SessionArchived,
    SessionEvent,
    ToolCalled,
    ToolInputStarted,
)
from fairlead_schema.events.execution import RestReason
from fairlead_schema.tool import Executor
from fairlead_session.explain import explain
from fairlead_session.state import Session

CALL = (
    ToolInputStarted(assistant_message_id="msg_a", call_id="c", name="read"),
    ToolCalled(
        assistant_message_id="msg_a", call_id="c", tool="read", input={}, provider=Executor()
    ),
)
TURN = (admitted("msg_1"), claimed(), promoted("msg_1"), dispatched(), step_started())


@pytest.mark.parametrize(
    ("events", "state", "word"),
    [
        ((), "idle", "nothing to do"),
        ((admitted("msg_1"),), "queued", "1 pending input"),
        (TURN, "running", "step 1"),
        ((*TURN, *CALL), "running", "1 tool calls"),
        ((*TURN, *CALL, released("parked")), "waiting", "the tool read"),
        ((SessionArchived(),), "archived", "archived"),
        ((*TURN, released("handover")), "queued", "left behind"),
    ],
)
def test_each_state_has_its_sentence(
    events: tuple[SessionEvent, ...], state: str, word: str
) -> None:
    """P-27: a durable status, from the log alone."""
    told = explain(given(CREATED, INITIALISED, *events))

    assert told.state == state
    assert word in told.reason
    assert told.reason.endswith(".")


@pytest.mark.parametrize("reason", sorted(get_args(RestReason)))
def test_every_reason_to_rest_is_told_with_its_detail(reason: RestReason) -> None:
    rest = ExecutionReleased(generation=1, reason=reason, detail="because", wake_at=9)

    told = explain(given(CREATED, INITIALISED, claimed(), rest))

    assert "because" in told.reason
    assert told.since is not None


def test_a_session_that_does_not_exist_is_missing() -> None:
    assert explain(Session(id="ses_x")).state == "missing"
