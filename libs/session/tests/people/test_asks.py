"""Asking people: what is asked, what an answer writes, and what it never does."""

import pytest
from hypothesis import given as over
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    PROPERTY,
    claimed,
    dispatched,
    given,
    recorded,
    released,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    AttemptFinished,
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    ResumeRequested,
    SessionEvent,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.permission import (
    PermissionRequest,
    PermissionRule,
    QuestionInfo,
    Reply,
    SavedPermission,
)
from fairlead_schema.tools.content import DECLINED, Executor, TextContent
from fairlead_session.calls.lifecycle import Begin, NotOpen, WaitsForPerson, begin
from fairlead_session.execution import recovery
from fairlead_session.fold.asks import ANSWERS_MAX
from fairlead_session.next_move import Rest, Stop, next_move
from fairlead_session.people import asks
from fairlead_session.people.asks import AskNotPending, PermissionIdInUse
from fairlead_session.people.pending import (
    close_asks,
    ready_calls,
    waits_for_people,
    withdraw_continue_question,
)
from fairlead_session.people.permission import Ask, Denied, Need, approval_rules, permit
from fairlead_session.state.calls import Grant, UnsettledCall
from fairlead_session.state.session import Session
from fairlead_session.verify.verify import verify

ASKING = (PermissionRule(action="*", resource="*", effect="ask"),)
ALLOWING = (PermissionRule(action="*", resource="*", effect="allow"),)
BASH = Need("vcs", ("git push",), save=("git *",))


def called(call: str = "call_1", agent: str = "build") -> tuple[SessionEvent, ...]:
    return (
        ToolInputStarted(assistant_message_id="msg_a", call_id=call, name="vcs"),
        ToolCalled(
            assistant_message_id="msg_a",
            call_id=call,
            tool="vcs",
            input={},
            provider=Executor(),
            agent=agent,
            retry="once",
            revision="r",
        ),
    )


def session(*calls: str) -> Session:
    events_ = (event for call in calls or ("call_1",) for event in called(call))
    return given(CREATED, claimed(), dispatched(), step_started(), *events_)


def call_of(session: Session, call_id: str = "call_1") -> UnsettledCall:
    return next(call for call in session.calls if call.call_id == call_id)


def ask(
    session: Session, call_id: str = "call_1", need: Need = BASH, id_: str | None = None
) -> Session:
    event = asks.permission_for_call(
        session.id, call_of(session, call_id), need, id_ or f"per_{call_id}"
    )
    return then(session, event)


def permission_reply(
    session: Session,
    reply: Reply,
    message: str | None = None,
    *,
    id_: str = "per_call_1",
    rules: tuple[PermissionRule, ...] = ASKING,
    saved: tuple[PermissionRule, ...] = (),
) -> asks.AnswerDecision:
    answer = PermissionReplied(request_id=id_, reply=reply, message=message)
    return asks.reply_permission(session, answer, lambda _agent: rules, saved)


def events(answering: asks.AnswerDecision) -> tuple[SessionEvent, ...]:
    assert not isinstance(answering, AskNotPending)
    return answering


def begin_call(session: Session, call_id: str = "call_1") -> object:
    return begin(session, "msg_a", call_id, "wkr_a", None)


def test_a_request_carries_its_call_and_what_always_would_stand_for() -> None:
    """K-14, K-35: durable, and tied to the call that waits."""
    waiting = ask(session())

    (pending,) = waiting.asks.permissions.values()
    assert pending.request == PermissionRequest(
        id="per_call_1",
        session_id="ses_1",
        action="vcs",
        resources=("git push",),
        save=("git *",),
        source=pending.request.source,
    )
    assert pending.request.source is not None
    assert pending.request.source.wire() == {
        "type": "tool",
        "messageID": "msg_a",
        "callID": "call_1",
    }


def test_the_agent_that_called_decides_whatever_the_session_says_later() -> None:
    """K-08, K-09: the agent is kept with the call and with its request."""
    calls = called(agent="plan")
    session_ = given(CREATED, claimed(), dispatched(), step_started(), *calls)

    waiting = ask(session_)

    assert call_of(waiting).agent == "plan"
    assert waiting.asks.permissions["per_call_1"].agent == "plan"


@pytest.mark.parametrize(
    ("rules", "saved", "grants", "outcome"),
    [
        (ALLOWING, (), (), None),
        (ASKING, (), (), Ask(BASH)),
        ((), (), (), Ask(BASH)),
        (ASKING, (PermissionRule(action="vcs", resource="git *", effect="allow"),), (), None),
        (ASKING, (), (Grant("vcs", ("git push",)),), None),
        (ASKING, (), (Grant("vcs", ("git pull",)),), Ask(BASH)),
        (ASKING, (), (Grant("read", ("git push",)),), Ask(BASH)),
    ],
)
def test_what_stands_in_a_calls_way(
    rules: tuple[PermissionRule, ...],
    saved: tuple[PermissionRule, ...],
    grants: tuple[Grant, ...],
    outcome: Ask | None,
) -> None:
    """K-07, K-12, K-13, K-33: allowed runs; what nobody allowed asks; a grant is of that alone."""
    assert permit(rules, saved, grants, (BASH,)) == outcome


def test_a_denial_is_told_with_its_rule_and_before_anybody_is_asked() -> None:
    """E-09, K-06, K-13: over all needs, and whatever was approved or granted."""
    rules = (*ASKING, PermissionRule(action="edit", resource="docs/*", effect="deny"))
    saved = (PermissionRule(action="*", resource="*", effect="allow"),)
    needs = (BASH, Need("edit", ("src/a", "docs/b")))

    denial = permit(rules, saved, (Grant("edit", ("src/a", "docs/b")),), needs)

    assert denial == Denied("Permission denied: edit (rule: edit docs/* deny)")


def test_needs_are_asked_one_after_another() -> None:
    """K-27: leaving the location, then reading; the first answer does not stand for the second."""
    outside, read = Need("external_directory", ("/etc/*",)), Need("read", ("/etc/hosts",))

    assert permit(ASKING, (), (), (outside, read)) == Ask(outside)
    assert permit(ASKING, (), (Grant("external_directory", ("/etc/*",)),), (outside, read)) == Ask(
        read
    )


def test_a_call_waits_while_a_person_is_asked_and_only_then() -> None:
    """K-13, K-15: no worker begins it; once permitted it begins."""
    waiting = ask(session())
    permitted = then(waiting, *events(permission_reply(waiting, "once")))

    assert begin_call(waiting) == WaitsForPerson()
    assert isinstance(begin_call(permitted), Begin)
    assert call_of(permitted).grants == (Grant("vcs", ("git push",)),)


def test_once_answers_that_request_alone() -> None:
    """K-15: the other call goes on waiting."""
    waiting = ask(ask(session("call_1", "call_2")), "call_2")

    events_ = events(permission_reply(waiting, "once"))

    assert events_ == (PermissionReplied(request_id="per_call_1", reply="once"),)
    assert [call.call_id for call in ready_calls(then(waiting, *events_))] == ["call_1"]


def test_always_also_answers_what_is_allowed_by_now_in_the_session() -> None:
    """K-17, K-18: what the approval covers, and nothing that a rule denies or that it leaves out."""
    waiting = ask(session("call_1", "call_2", "call_3", "call_4"))
    waiting = ask(waiting, "call_2", Need("vcs", ("git pull",)))
    waiting = ask(waiting, "call_3", Need("vcs", ("rm a",)))
    waiting = ask(waiting, "call_4", Need("vcs", ("git reset",)))
    saved = approval_rules(
        [SavedPermission(id="psv_1", project_id="p", action="vcs", resource="git *")]
    )
    rules = (*ASKING, PermissionRule(action="vcs", resource="git reset", effect="deny"))

    events_ = events(permission_reply(waiting, "always", rules=rules, saved=saved))

    assert events_ == (
        PermissionReplied(request_id="per_call_1", reply="always"),
        PermissionReplied(request_id="per_call_2", reply="always"),
    )
    assert events(permission_reply(waiting, "always")) == events_[:1]


def test_a_request_is_looked_at_again_by_its_own_agents_rules() -> None:
    """K-09, K-17: an approval in another session answers it, unless its agent may not."""
    waiting = ask(given(CREATED, claimed(), dispatched(), step_started(), *called(agent="plan")))
    saved = (PermissionRule(action="vcs", resource="git *", effect="allow"),)
    denying = (*ASKING, PermissionRule(action="vcs", resource="*", effect="deny"))

    def of_plan(agent: str) -> tuple[PermissionRule, ...]:
        return denying if agent == "plan" else ALLOWING

    assert asks.recheck_permission(waiting, "per_call_1", lambda _agent: ASKING, saved) == (
        PermissionReplied(request_id="per_call_1", reply="always"),
    )
    assert asks.recheck_permission(waiting, "per_call_1", lambda _agent: ASKING, ()) == ()
    assert asks.recheck_permission(waiting, "per_call_1", of_plan, saved) == ()
    assert asks.recheck_permission(waiting, "per_other", lambda _agent: ALLOWING, saved) == ()


def test_a_refusal_with_words_fails_that_call_alone_and_tells_the_model() -> None:
    """E-12, K-20, K-21, K-22: the words arrive; the other request goes on waiting."""
    waiting = ask(ask(session("call_1", "call_2")), "call_2")

    events_ = events(permission_reply(waiting, "reject", "use the API"))
    after = then(waiting, *events_)

    assert [event.type for event in events_] == ["permission.replied", "tool.failed"]
    failed = events_[1]
    assert isinstance(failed, ToolFailed)
    assert failed.error.message == "Permission refused: vcs. The user says: use the API"
    assert (list(after.asks.permissions), after.execution.interrupted) == (["per_call_2"], False)
    assert [call.call_id for call in after.calls] == ["call_2"]


@pytest.mark.parametrize("message", [None, ""])
def test_a_decline_stops_the_session_and_answers_everything_else(message: str | None) -> None:
    """E-10, K-19, K-23: empty words are none; calls and step are settled by the stop."""
    waiting = ask(ask(session("call_1", "call_2")), "call_2")
    waiting = then(waiting, asks.question_for_call("ses_1", call_of(waiting), (), "que_1"))
    finished = AttemptFinished(
        attempt_id="att_msg_a",
        assistant_message_id="msg_a",
        finish="tool-calls",
        cost=0,
        tokens=Tokens(),
    )
    waiting = then(waiting, finished, released("parked"))

    events_ = events(permission_reply(waiting, "reject", message))
    declined = then(waiting, *events_)
    stopped = then(
        declined, claimed(2), *recovery.stop_open_work(declined), released("declined", 2)
    )

    assert [event.type for event in events_] == [
        "permission.replied",
        "permission.replied",
        "question.rejected",
        "interrupt.requested",
    ]
    assert declined.execution.declined == "permission to run vcs (git push) was declined"
    assert (next_move(declined), close_asks(declined)) == (Stop(), ())
    assert isinstance(begin_call(declined), NotOpen)
    assert (stopped.calls, stopped.turn.attempt, stopped.execution.interrupted) == ((), None, False)
    assert (stopped.execution.declined, next_move(stopped)) == (None, Rest("idle"))


def test_nothing_of_the_step_is_left_open_by_a_decline() -> None:
    """E-10, E-11: the calls fail as interrupted and the step ends durably, in one commit."""
    waiting = ask(session())

    declined = then(waiting, *events(permission_reply(waiting, "reject")))
    settled = recovery.stop_open_work(declined)

    assert [event.type for event in settled] == ["tool.failed", "step.failed"]
    assert isinstance(settled[0], ToolFailed)
    assert settled[0].error.message == recovery.INTERRUPTED_TOOL
    assert settled[0].error.code == DECLINED


def test_only_what_had_not_begun_is_declined() -> None:
    """A call that runs is interrupted: it may have changed something."""
    begun = ToolStarted(
        assistant_message_id="msg_a", call_id="call_2", worker="wkr_1", generation=1
    )
    running = then(session("call_1", "call_2"), begun)
    waiting = ask(running)

    declined = then(waiting, *events(permission_reply(waiting, "reject")))
    failed = [one for one in recovery.stop_open_work(declined) if isinstance(one, ToolFailed)]

    assert {one.call_id: one.error.code for one in failed} == {"call_1": DECLINED, "call_2": None}


def test_an_interrupt_declines_nothing() -> None:
    interrupted = then(ask(session()), InterruptRequested())

    (failed, *_) = recovery.stop_open_work(interrupted)[1:]

    assert isinstance(failed, ToolFailed)
    assert failed.error.code is None


def test_an_interrupt_leaves_no_request_behind() -> None:
    """K-26: what stops the asker answers the request, durably."""
    waiting = ask(session("call_1", "call_2"))
    waiting = then(
        waiting, asks.question_for_call("ses_1", call_of(waiting, "call_2"), (), "que_1")
    )
    interrupted = then(waiting, InterruptRequested())

    stopped = then(interrupted, *recovery.stop_open_work(interrupted))

    assert (stopped.asks.permissions, stopped.asks.questions, stopped.calls) == ({}, {}, ())


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (("once", None), ("once", None), True),
        (("once", None), ("always", None), False),
        (("once", None), ("reject", None), False),
        (("reject", "no"), ("reject", "no"), True),
        (("reject", "no"), ("reject", "not now"), False),
        (("reject", None), ("reject", ""), True),
    ],
)
def test_the_same_reply_again_changes_nothing_and_another_is_too_late(
    first: tuple[Reply, str | None], second: tuple[Reply, str | None], *, same: bool
) -> None:
    """K-24: a client may lose the answer to its reply; a different one finds nothing pending."""
    waiting = ask(session())
    after = then(waiting, *events(permission_reply(waiting, *first)))

    again = permission_reply(after, second[0], second[1] or None)

    assert again == (() if same else AskNotPending())


def test_what_was_never_asked_is_not_pending() -> None:
    """K-24, K-34, N-25: unknown, and what another session asked, which is unknown here."""
    session_ = session()

    assert permission_reply(session_, "once") == AskNotPending()
    assert (
        asks.answer_question(session_, QuestionReplied(request_id="que_1", answers=()))
        == AskNotPending()
    )
    assert asks.reject_question(session_, QuestionRejected(request_id="que_1")) == AskNotPending()


def test_only_the_newest_answers_are_remembered() -> None:
    """K-24: what makes a repeated reply harmless does not grow for ever."""
    session_ = session()
    for number in range(ANSWERS_MAX + 5):
        session_ = ask(session_, id_=f"per_{number}")
        session_ = then(session_, PermissionReplied(request_id=f"per_{number}", reply="once"))

    assert len(session_.asks.answers) == ANSWERS_MAX
    assert "per_0" not in session_.asks.answers


COLOUR = QuestionInfo(question="Which colour?", header="Colour", options=())
SIZE = QuestionInfo(question="Which size?", header="Size", options=(), multiple=True)


def questioned() -> Session:
    session_ = session()
    return then(
        session_, asks.question_for_call("ses_1", call_of(session_), (COLOUR, SIZE), "que_1")
    )


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ((("red",), ("S", "M")), "Which colour? → red\nWhich size? → S, M"),
        ((("red",),), "Which colour? → red\nWhich size? → Unanswered"),
        ((), "Which colour? → Unanswered\nWhich size? → Unanswered"),
        (((), ("any other words",)), "Which colour? → Unanswered\nWhich size? → any other words"),
        ((("a",), ("b",), ("c",)), "Which colour? → a\nWhich size? → b"),
    ],
)
def test_answers_are_the_result_of_the_call(
    answers: tuple[tuple[str, ...], ...], text: str
) -> None:
    """L-69, N-24, N-27: each question with its labels in order, whatever the options were."""
    waiting = questioned()
    answer = QuestionReplied(request_id="que_1", answers=answers)

    replied_, settled = events(asks.answer_question(waiting, answer))

    assert replied_ == answer
    assert isinstance(settled, ToolSucceeded)
    assert settled.content == (TextContent(text=text),)
    assert settled.structured == {"answers": [list(answer) for answer in answers]}
    after = then(waiting, replied_, settled)
    assert (after.calls, after.asks.questions, after.execution.work_requested) == ((), {}, True)
    assert asks.answer_question(after, answer) == ()


def test_dismissing_a_question_is_a_decline() -> None:
    """E-13, L-70, N-24: it halts the drain and is never told to the model."""
    waiting = questioned()

    events_ = events(asks.reject_question(waiting, QuestionRejected(request_id="que_1")))

    assert [event.type for event in events_] == ["question.rejected", "interrupt.requested"]
    assert next_move(then(waiting, *events_)) == Stop()


def held_session() -> Session:
    """A session whose turn died with its runner, under the policy `ask`."""
    crashed = given(CREATED, claimed(), dispatched(), step_started())
    assert crashed.turn.attempt is not None
    recovered = recovery.settle_attempt(crashed, crashed.turn.attempt, "ask", "que_1")
    return then(crashed, *recovered, released("held"))


@pytest.mark.parametrize(
    ("answers", "goes_on"),
    [((("Continue",),), True), ((("continue",),), True), ((("Stop",),), False), ((), False)],
)
def test_a_person_decides_whether_a_crashed_turn_runs_again(
    answers: tuple[tuple[str, ...], ...], *, goes_on: bool
) -> None:
    """P-01: nothing runs before the answer; stop leaves it held, for a resume or new input."""
    waiting = held_session()

    events_ = events(
        asks.answer_question(waiting, QuestionReplied(request_id="que_1", answers=answers))
    )
    after = then(waiting, *events_)

    assert isinstance(next_move(waiting), Rest)
    assert (ResumeRequested() in events_) is goes_on
    assert (after.execution.held, isinstance(next_move(after), Rest)) == (not goes_on, not goes_on)


def test_dismissing_the_question_of_a_crash_stops_nothing_more() -> None:
    """P-01: nothing is under way; the turn stays held."""
    waiting = held_session()

    events_ = events(asks.reject_question(waiting, QuestionRejected(request_id="que_1")))

    assert events_ == (QuestionRejected(request_id="que_1"),)
    assert then(waiting, *events_).execution.held


def test_saying_what_to_do_otherwise_takes_the_question_back() -> None:
    """P-01: a resume or new input is an answer; a call's question is not touched by it."""
    assert withdraw_continue_question(held_session()) == (QuestionRejected(request_id="que_1"),)
    assert withdraw_continue_question(questioned()) == ()


def test_an_old_request_expires_like_a_decline() -> None:
    """K-19: only when it is that old, and it says why."""
    waiting = ask(session())
    at = waiting.asks.permissions["per_call_1"].asked

    assert asks.expire_ask(waiting, "per_call_1", before=at) == ()
    assert asks.expire_ask(waiting, "per_other", before=at + 1) == ()
    events_ = asks.expire_ask(waiting, "per_call_1", before=at + 1)
    assert events_[0] == PermissionReplied(request_id="per_call_1", reply="reject")
    assert events_[-1] == InterruptRequested(
        declined="permission to run vcs (git push) was not answered in time"
    )


def test_a_request_from_outside_stops_nothing_when_it_is_declined() -> None:
    """K-12, K-19: no call waits for it, so there is nothing to halt."""
    request = PermissionRequest(id="per_x", session_id="ses_1", action="deploy", resources=("*",))
    waiting = given(CREATED, PermissionAsked(request=request, agent="build"))

    events_ = events(permission_reply(waiting, "reject", id_="per_x"))

    assert events_ == (PermissionReplied(request_id="per_x", reply="reject"),)
    assert not waits_for_people(waiting)


@PROPERTY
@over(st.lists(st.sampled_from(["ask", "once", "always", "feedback", "decline"]), max_size=12))
def test_whatever_people_answer_every_request_is_answered_once(steps: list[str]) -> None:
    """K-24: the log of any answers passes the checker, and no call is settled twice."""
    log: list[SessionEvent] = [CREATED, claimed(), dispatched(), step_started()]
    log += [event for call in ("call_1", "call_2") for event in called(call)]
    session_, minted = given(*log), 0
    replies: dict[str, tuple[Reply, str | None]] = {
        "once": ("once", None),
        "always": ("always", None),
        "feedback": ("reject", "no"),
        "decline": ("reject", None),
    }
    for step in steps:
        new: tuple[SessionEvent, ...] = ()
        waiting = next(iter(session_.asks.permissions), None)
        if step == "ask" and ready_calls(session_) and not session_.execution.interrupted:
            minted += 1
            new = (
                asks.permission_for_call("ses_1", ready_calls(session_)[0], BASH, f"per_{minted}"),
            )
        elif step != "ask" and waiting is not None:
            new = events(permission_reply(session_, *replies[step], id_=waiting))
        session_, log = then(session_, *new), [*log, *new]
        assert (
            len(session_.asks.permissions) <= len(session_.calls) or session_.execution.interrupted
        )
    stop = (InterruptRequested(),) if not session_.execution.interrupted else ()
    session_ = then(session_, *stop)
    log += [*stop, *recovery.stop_open_work(session_), released("interrupted")]

    assert verify(recorded(*log)) == []


def test_a_step_that_asked_nobody_ends_as_ever() -> None:
    """E-04: no request, no wait."""
    assert not waits_for_people(
        given(CREATED, claimed(), dispatched(), step_started(), step_ended())
    )


def test_a_question_is_asked_for_a_call_and_waits_like_a_permission() -> None:
    """L-68, N-24: ids, source, and nobody begins the call."""
    waiting = questioned()

    (pending,) = waiting.asks.questions.values()
    assert isinstance(asks.question_for_call("ses_1", call_of(waiting), (), "que_2"), QuestionAsked)
    assert pending.request.tool is not None
    assert (pending.request.id, pending.request.tool.call_id) == ("que_1", "call_1")
    assert (begin_call(waiting), waits_for_people(waiting)) == (WaitsForPerson(), True)


def test_a_permission_is_asked_once_by_its_id() -> None:
    """The same request again writes nothing. Another request cannot take its id."""
    session_ = session()
    event = asks.permission_for_call(session_.id, call_of(session_), BASH, "per_1")
    other = asks.permission_for_call(session_.id, call_of(session_), Need("read", ("a",)), "per_1")

    assert asks.ask_permission(session_, event) == (event,)
    waiting = then(session_, event)
    assert asks.ask_permission(waiting, event) == ()
    assert asks.ask_permission(waiting, other) == PermissionIdInUse("per_1")
    after = then(waiting, PermissionReplied(request_id="per_1", reply="once"))
    assert asks.ask_permission(after, event) == PermissionIdInUse("per_1")


def test_only_an_approval_for_always_of_a_request_with_patterns_is_saved() -> None:
    """K-16: the request names the patterns that the project keeps."""
    waiting = ask(ask(session("call_1", "call_2")), "call_2", Need("vcs", ("rm a",)))

    def saved(id_: str, reply: Reply) -> bool:
        answer = PermissionReplied(request_id=id_, reply=reply)
        return asks.approval_to_save(waiting, answer) is not None

    assert saved("per_call_1", "always")
    assert not saved("per_call_1", "once")
    assert not saved("per_call_2", "always")
    assert not saved("per_other", "always")
