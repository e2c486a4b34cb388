"""A session that waits for people: parked, not stranded, and everybody says so."""

import pytest
from libs.session.tests.conftest import (
    CREATED,
    admitted,
    claimed,
    dispatched,
    given,
    promoted,
    recorded,
    released,
    step_started,
    then,
)

from fairlead_schema.events import (
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    SessionEvent,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
    ToolStarted,
)
from fairlead_schema.permission import (
    CallSource,
    PermissionRequest,
    QuestionRequest,
    ToolSource,
)
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.explain import explain
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.next_move import AwaitCalls, is_moving, next_move
from fairlead_session.people.pending import waits_for_people
from fairlead_session.verify.unfinished import find_unfinished_work
from fairlead_session.verify.verify import verify

BEFORE: tuple[SessionEvent, ...] = (
    CREATED,
    admitted("msg_1"),
    claimed(),
    promoted("msg_1"),
    dispatched(),
    step_started(),
)


def called(call: str) -> tuple[SessionEvent, ...]:
    return (
        ToolInputStarted(assistant_message_id="msg_a", call_id=call, name="bash"),
        ToolCalled(
            assistant_message_id="msg_a", call_id=call, tool="bash", input={}, provider=Executor()
        ),
    )


def permission(call: str = "c1") -> PermissionAsked:
    source = CallSource(message_id="msg_a", call_id=call)
    request = PermissionRequest(
        id=f"per_{call}", session_id="ses_1", action="bash", resources=("ls",), source=source
    )
    return PermissionAsked(request=request, agent="build")


def question(call: str = "c2") -> QuestionAsked:
    tool = ToolSource(message_id="msg_a", call_id=call)
    return QuestionAsked(
        request=QuestionRequest(id=f"que_{call}", session_id="ses_1", questions=(), tool=tool)
    )


def permitted(call: str = "c1") -> PermissionReplied:
    return PermissionReplied(request_id=f"per_{call}", reply="once")


def failed(call: str) -> ToolFailed:
    error = ErrorInfo(message="no")
    return ToolFailed(assistant_message_id="msg_a", call_id=call, error=error, provider=Executor())


BOTH = (*BEFORE, *called("c1"), *called("c2"))
PARKED = (*BOTH, permission(), question(), released("parked"))


@pytest.mark.parametrize(
    ("events", "waits"),
    [
        (BOTH, False),
        ((*BOTH, permission()), False),
        (PARKED, True),
        ((*PARKED, permitted()), False),
        ((*BOTH, permission(), failed("c2")), True),
        (BEFORE, False),
    ],
)
def test_a_session_waits_for_people_when_nothing_else_can_go_on(
    events: tuple[SessionEvent, ...], *, waits: bool
) -> None:
    """K-25: every open call asks; one that runs, or may run, is enough not to."""
    assert waits_for_people(given(*events)) is waits


def test_it_is_parked_but_not_moving_until_somebody_answers() -> None:
    """K-25: no wake, no sweep, no runner; the answer stirs it."""
    waiting = given(*PARKED)
    after = then(waiting, permitted())

    assert (is_moving(waiting), is_at_rest(waiting)) == (False, False)
    assert isinstance(next_move(waiting), AwaitCalls)
    assert is_moving(after)
    assert is_moving(then(waiting, InterruptRequested()))


def test_input_that_arrives_meanwhile_does_not_make_it_move() -> None:
    """E-03: it joins at the next boundary, which comes after the answer."""
    assert not is_moving(then(given(*PARKED), admitted("msg_2")))


def test_the_checker_does_not_take_it_for_stranded() -> None:
    """K-25: only a person can move it on, and until then nothing is unfinished."""
    late = admitted("msg_2")

    assert find_unfinished_work(recorded(*PARKED)) == ()
    assert find_unfinished_work(recorded(*PARKED, late)) == ()
    assert find_unfinished_work(recorded(*PARKED, permitted())) == ("call c1 is not settled",)
    assert find_unfinished_work(recorded(*BOTH, permission(), released("parked"))) == (
        "call c2 is not settled",
    )
    assert "an interrupt is not honoured" in find_unfinished_work(
        recorded(*PARKED, InterruptRequested())
    )


@pytest.mark.parametrize(
    ("events", "rule"),
    [
        ((*BOTH, permission(), permission()), "asked-once"),
        ((*BOTH, permitted()), "answered-once"),
        ((*BOTH, permission(), permitted(), permitted()), "answered-once"),
        ((*BOTH, QuestionRejected(request_id="que_c2")), "answered-once"),
        (
            (
                *BOTH,
                permission(),
                ToolStarted(
                    assistant_message_id="msg_a", call_id="c1", worker="wkr_a", generation=1
                ),
            ),
            "started-permitted",
        ),
    ],
)
def test_the_checker_finds_what_no_ask_may_show(
    events: tuple[SessionEvent, ...], rule: str
) -> None:
    """K-13, K-24: asked once, answered once, and nothing runs in between."""
    assert [violation.rule for violation in verify(recorded(*events))] == [rule]


def test_it_explains_who_waits_for_what() -> None:
    """K-35: one sentence, and the request to answer."""
    explanation = explain(given(*PARKED))

    assert (explanation.state, explanation.reason) == (
        "waiting",
        "It waits for a person: permission to run bash (ls), a person: an answer to a question.",
    )
    assert explanation.waiting_on is not None
    assert [(item.kind, item.id) for item in explanation.waiting_on] == [
        ("permission", "per_c1"),
        ("question", "que_c2"),
    ]


def test_a_decline_is_explained_as_one() -> None:
    """E-10: it rests because a person declined, and says what."""
    declined = InterruptRequested(declined="permission to run bash (ls) was declined")
    release = released("declined", 2).model_copy(update={"detail": declined.declined})
    stopped = then(given(*PARKED), permitted(), declined, claimed(2), release)

    explanation = explain(
        then(stopped, failed("c1"), failed("c2"), QuestionRejected(request_id="que_c2"))
    )

    assert explanation.reason == (
        "It rests: a person declined a tool call (permission to run bash (ls) was declined)."
    )
    assert explanation.next == "a new prompt or a resume runs it"


def test_what_waits_is_part_of_a_snapshot() -> None:
    """K-25: a cold start knows it without reading the whole log."""
    for session in (given(*PARKED), given(*PARKED, permitted())):
        assert thaw(freeze(session)) == session


def test_a_call_that_runs_waits_for_nobody_although_it_asks() -> None:
    """K-12: a tool may ask from outside while it runs; its worker still has it."""
    start = ToolStarted(assistant_message_id="msg_a", call_id="c1", worker="wkr_a", generation=1)
    running = (*BEFORE, *called("c1"), start, permission())

    assert not waits_for_people(given(*running))
    assert verify(recorded(*running)) == []
    assert find_unfinished_work(recorded(*running, released("parked"))) == (
        "call c1 is not settled",
    )
