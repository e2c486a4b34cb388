"""The checker of the chaos sees what it is there to see."""

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AttemptDispatched,
    CompactionEnded,
    CompactionStarted,
    ExecutionClaimed,
    ExecutionReleased,
    PermissionAsked,
    PermissionReplied,
    PromptAdmitted,
    PromptPromoted,
    SessionCreated,
    SessionEvent,
    StepEnded,
    StepStarted,
    ToolCalled,
    ToolFailed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import CallSource, PermissionRequest, Reply
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft, Recorded, record
from fairlead_schema.tools.content import ErrorInfo, Executor
from tests.chaos.checker import Effects
from tests.chaos.checker import judge as find_violations
from tests.chaos.feed_check import compare_feed
from tests.chaos.promises import Promised
from tests.chaos.weather import forecast

HERE = Executor(executed=False)
HELLO = Prompt(text="hello")
MODEL = ModelRef(provider_id="acme", id="fast")


def turn(assistant: str, step: int) -> tuple[SessionEvent, SessionEvent, SessionEvent]:
    """A dispatched attempt, its start, its end."""
    return (
        AttemptDispatched(
            attempt_id=f"att_{assistant}",
            assistant_message_id=assistant,
            agent="build",
            model=MODEL,
            step=step,
        ),
        StepStarted(assistant_message_id=assistant, agent="build", model=MODEL),
        StepEnded(assistant_message_id=assistant, finish="stop", cost=0, tokens=Tokens()),
    )


OPENED: tuple[SessionEvent, ...] = (
    SessionCreated(title="One", project_id="prj_1", location=LocationRef(directory="/work")),
    PromptAdmitted(message_id="msg_1", prompt=HELLO, delivery="steer"),
    ExecutionClaimed(generation=1, runner="run_a"),
    PromptPromoted(message_id="msg_1", prompt=HELLO, created=0),
    *turn("msg_a", 1)[:2],
)
CALL: tuple[SessionEvent, ...] = (
    ToolCalled(
        assistant_message_id="msg_a",
        call_id="call_1",
        tool="probe_once",
        input={"key": "k"},
        provider=HERE,
        retry="once",
    ),
    ToolStarted(assistant_message_id="msg_a", call_id="call_1", worker="wkr_1", generation=1),
    ToolSucceeded(
        assistant_message_id="msg_a", call_id="call_1", structured={}, content=(), provider=HERE
    ),
)
ENDED: tuple[SessionEvent, ...] = (
    turn("msg_a", 1)[2],
    *turn("msg_b", 2),
    ExecutionReleased(generation=1, reason="idle"),
)
BEGUN = ("probe_once", "k", "wkr_1", "7", "begun")
PROMISED = Promised({"ses_1": ["msg_1"]})
SEEN = Effects([BEGUN], {"ses_1": 2})


def make_logs(*events: SessionEvent) -> dict[str, list[Recorded]]:
    wanted = events or (*OPENED, *CALL, *ENDED)
    drafts = tuple(Draft(f"evt_{number}", 1, event) for number, event in enumerate(wanted))
    return {"ses_1": list(record(drafts, after=0))}


def judge(logs: dict[str, list[Recorded]], promised: Promised, noticed: Effects) -> list[str]:
    return [str(violation) for violation in find_violations(logs, promised, noticed)]


def test_a_sound_run_is_not_complained_of() -> None:
    assert judge(make_logs(), PROMISED, SEEN) == []


def test_a_lost_prompt_is_seen() -> None:
    faults = judge(make_logs(), Promised({"ses_1": ["msg_1", "msg_2"]}), SEEN)

    assert faults[0] == "lost: ses_1: msg_2 has a receipt and was promoted 0 times"


def test_a_lost_session_is_seen() -> None:
    faults = judge({}, PROMISED, Effects())

    assert faults == ["lost: ses_1: it has receipts and no log"]


def test_a_second_run_of_a_once_call_is_seen() -> None:
    faults = judge(make_logs(), PROMISED, Effects([BEGUN, BEGUN], {"ses_1": 2}))

    assert faults == ["doubled: ses_1: once call k ran 2 times"]


def test_a_result_without_a_run_and_a_run_without_a_start_are_seen() -> None:
    unstarted = make_logs(*OPENED, CALL[0], CALL[2], *ENDED)

    assert judge(make_logs(), PROMISED, Effects([], {"ses_1": 2})) == [
        "other: ses_1: call k succeeded and never ran"
    ]
    assert judge(unstarted, PROMISED, SEEN) == ["stale: ses_1: call k ran and was never started"]


def test_a_pure_call_may_run_before_its_start() -> None:
    pure = CALL[0].model_copy(update={"tool": "probe_pure", "retry": "pure"})
    failed = ToolFailed(
        assistant_message_id="msg_a", call_id="call_1", error=ErrorInfo(message="no"), provider=HERE
    )

    assert judge(make_logs(*OPENED, pure, failed, *ENDED), PROMISED, SEEN) == []


def test_an_unrecorded_provider_call_is_seen() -> None:
    faults = judge(make_logs(), PROMISED, Effects([BEGUN], {"ses_1": 3}))

    assert faults == ["doubled: ses_1: 2 attempts, 3 provider calls, 2 answers"]


def test_what_should_still_move_is_seen() -> None:
    faults = judge(make_logs(*OPENED), PROMISED, Effects([], {"ses_1": 1}))

    assert faults == ["stranded: ses_1: attempt att_msg_a has no outcome"]


ASKED = PermissionAsked(
    request=PermissionRequest(
        id="per_1",
        session_id="ses_1",
        action="probe_once",
        resources=("*",),
        source=CallSource(message_id="msg_a", call_id="call_1"),
    ),
    agent="asking",
)


def logs_with_replies(*words: Reply) -> dict[str, list[Recorded]]:
    replies = (PermissionReplied(request_id="per_1", reply=word) for word in words)
    return make_logs(*OPENED, CALL[0], ASKED, *replies, *CALL[1:], *ENDED)


def promise_replies(*words: str) -> Promised:
    return Promised({"ses_1": ["msg_1"]}, {"per_1": set(words)})


def test_an_approved_call_is_not_complained_of() -> None:
    assert judge(logs_with_replies("once"), promise_replies("once"), SEEN) == []


def test_a_refused_call_that_began_is_seen() -> None:
    faults = judge(logs_with_replies("reject"), promise_replies("reject"), SEEN)

    assert faults == ["doubled: ses_1: call call_1 began, and per_1 was answered ['reject']"]


def test_a_second_answer_is_seen() -> None:
    faults = judge(logs_with_replies("once", "reject"), promise_replies("once", "reject"), SEEN)

    assert "doubled: ses_1: per_1 was answered 2 times" in faults


def test_an_accepted_answer_that_is_not_in_the_log_is_seen() -> None:
    faults = judge(logs_with_replies("once"), promise_replies("once", "reject"), SEEN)

    assert faults == ["lost: ses_1: per_1: ['once', 'reject'] accepted, ['once'] in the log"]


def test_an_ask_that_nobody_answered_is_seen() -> None:
    faults = judge(make_logs(*OPENED, CALL[0], ASKED), PROMISED, Effects([], {"ses_1": 1}))

    assert "stranded: ses_1: per_1 waits for a person" in faults


def test_a_summary_counts_as_a_provider_call_and_an_unasked_one_is_seen() -> None:
    id_ = "msg_c"
    summary: tuple[SessionEvent, ...] = (
        CompactionStarted(message_id=id_, reason="manual"),
        CompactionEnded(message_id=id_, reason="manual", text="short", recent=""),
    )
    log = make_logs(*OPENED, *CALL, turn("msg_a", 1)[2], *summary, *turn("msg_b", 2), ENDED[-1])

    assert judge(log, PROMISED, Effects([BEGUN], {"ses_1": 3})) == []
    assert len(judge(log, PROMISED, Effects([BEGUN], {"ses_1": 4}))) == 1


def test_a_forgotten_fact_is_seen() -> None:
    promised = Promised({"ses_1": ["msg_1"]}, kinds={"ses_1": "blind"})

    assert judge(make_logs(), promised, SEEN) == ["lost: ses_1: forgot its cargo: []"]


def test_a_feed_that_differs_from_its_log_is_seen() -> None:
    assert compare_feed("ses_1", [1, 2, 4], [1, 2, 4]) == []
    kinds = [
        compare_feed("ses_1", [1, 2, 4], told)[0].kind
        for told in ([1, 4], [1, 2, 2, 4], [1, 2, 3, 4], [2, 1, 4])
    ]

    assert kinds == ["lost", "doubled", "doubled", "other"]


def test_the_same_seed_brings_the_same_weather() -> None:
    assert forecast(7, 30) == forecast(7, 30) != forecast(8, 30)
    assert sum(strike.calm_s for strike in forecast(7, 30)[0]) >= 30
