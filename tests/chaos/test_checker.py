"""The checker of the chaos sees what it is there to see."""

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AttemptDispatched,
    ExecutionClaimed,
    ExecutionReleased,
    PromptAdmitted,
    PromptPromoted,
    SessionCreated,
    SessionEvent,
    StepEnded,
    StepStarted,
    ToolCalled,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft, Recorded, record
from fairlead_schema.tool import Executor
from tests.chaos.checker import Effects, Promised, judge
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


def sound(*events: SessionEvent) -> dict[str, list[Recorded]]:
    wanted = events or (*OPENED, *CALL, *ENDED)
    drafts = tuple(Draft(f"evt_{number}", 1, event) for number, event in enumerate(wanted))
    return {"ses_1": list(record(drafts, after=0))}


def test_a_sound_run_is_not_complained_of() -> None:
    assert judge(sound(), PROMISED, SEEN) == []


def test_a_lost_prompt_is_seen() -> None:
    told = judge(sound(), Promised({"ses_1": ["msg_1", "msg_2"]}), SEEN)

    assert told[0] == "ses_1: msg_2 has a receipt and was promoted 0 times"


def test_a_lost_session_is_seen() -> None:
    told = judge({}, PROMISED, Effects())

    assert told == ["ses_1 has receipts and no log"]


def test_a_second_run_of_a_once_call_is_seen() -> None:
    told = judge(sound(), PROMISED, Effects([BEGUN, BEGUN], {"ses_1": 2}))

    assert told == ["ses_1: once call k ran 2 times"]


def test_a_result_without_a_run_and_a_run_without_a_start_are_seen() -> None:
    unstarted = sound(*OPENED, CALL[0], CALL[2], *ENDED)

    assert judge(sound(), PROMISED, Effects([], {"ses_1": 2})) == [
        "ses_1: call k succeeded and never ran"
    ]
    assert judge(unstarted, PROMISED, SEEN) == ["ses_1: call k ran and was never started"]


def test_an_unrecorded_provider_call_is_seen() -> None:
    told = judge(sound(), PROMISED, Effects([BEGUN], {"ses_1": 3}))

    assert told == ["ses_1: 2 attempts, 3 provider calls, 2 answers"]


def test_what_should_still_move_is_seen() -> None:
    told = judge(sound(*OPENED), PROMISED, Effects([], {"ses_1": 1}))

    assert told == ["ses_1 should still move: attempt att_msg_a has no outcome"]


def test_the_same_seed_brings_the_same_weather() -> None:
    assert forecast(7, 30) == forecast(7, 30) != forecast(8, 30)
    assert sum(strike.calm_s for strike in forecast(7, 30)) >= 30
