"""The options of prompts: which hold for a turn, and when they end."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    PROPERTY,
    admitted,
    claimed,
    dispatched,
    given,
    observed,
    promoted,
    sample,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.catalog import ModelRef
from fairlead_schema.context import BaselinePart, SnapshotEntry
from fairlead_schema.events import (
    CompactionEnded,
    ContextReplaced,
    ContextUpdated,
    ExecutionRecovered,
    InterruptRequested,
    PromptAdmitted,
    PromptPromoted,
    ResumeRequested,
    StepFailed,
    ToolCalled,
    ToolSucceeded,
    TurnRetried,
)
from fairlead_schema.events.turn import RetryError
from fairlead_schema.message import UserMessage
from fairlead_schema.prompt import Prompt
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.input.admission import MessageIdInUse, admit
from fairlead_session.input.options import activity_after, choose_profile, select_tools
from fairlead_session.input.promotion import eligible_inputs
from fairlead_session.state.activity import NO_OPTIONS, Activity
from fairlead_session.state.session import Session
from fairlead_session.turn.boundary import TurnIds, prepare_turn

OTHER = ModelRef(provider_id="acme", id="slow")
IDS = TurnIds("att_1", "msg_a", "msg_system")
SAMPLE = sample(observed("core/date", "monday"))


def asks(id_: str, **options: object) -> PromptAdmitted:
    prompt = Prompt.model_validate({"text": "hello", **options})
    return PromptAdmitted(message_id=id_, prompt=prompt, delivery="steer")


def joins(id_: str, **options: object) -> PromptPromoted:
    return PromptPromoted(
        message_id=id_, prompt=Prompt.model_validate({"text": "hello", **options}), created=0
    )


def working(*options: dict[str, Any]) -> Session:
    """A session that owes an answer to prompts with these options."""
    prompts = (joins(f"msg_{index}", **each) for index, each in enumerate(options))
    return given(CREATED, claimed(), INITIALISED, *prompts)


def call_events(assistant: str = "msg_a") -> tuple[ToolCalled, ToolSucceeded]:
    return (
        ToolCalled(
            assistant_message_id=assistant,
            call_id="call_1",
            tool="read",
            input={},
            provider=Executor(),
        ),
        ToolSucceeded(
            assistant_message_id=assistant,
            call_id="call_1",
            structured={},
            content=(),
            provider=Executor(),
        ),
    )


def chosen(session: Session) -> tuple[str | None, ModelRef | None]:
    profile = choose_profile(session).profile
    assert profile is not None
    return profile.agent, profile.model


def test_the_options_of_a_prompt_choose_the_agent_and_the_model_of_its_turns() -> None:
    """P-18, P-21: before the promotion and after it, and the session's own profile stays."""
    waiting = given(CREATED, claimed(), INITIALISED, asks("msg_1", agent="plan", model=OTHER))
    inputs = eligible_inputs(waiting)

    profile = choose_profile(waiting, inputs).profile
    assert profile is not None
    assert (profile.agent, profile.model) == ("plan", OTHER)
    assert chosen(waiting) == (None, None)
    session = then(waiting, joins("msg_1", agent="plan", model=OTHER))
    assert chosen(session) == ("plan", OTHER)
    assert chosen(then(session, dispatched())) == ("plan", OTHER)
    assert session.profile is not None
    assert session.profile.agent is None


def test_options_end_with_the_answer() -> None:
    """P-18: the session's own agent and model come back."""
    session = working({"agent": "plan", "system": "In French.", "tools": ()})

    answered = then(session, dispatched(), step_started(), step_ended())

    assert answered.activity == NO_OPTIONS
    assert chosen(then(answered, promoted("msg_9"))) == (None, None)


def test_options_hold_while_the_model_works_with_tools() -> None:
    session = working({"agent": "plan"})

    called_once = then(session, dispatched(), step_started(), *call_events(), step_ended())

    assert called_once.execution.owed
    assert chosen(called_once) == ("plan", None)


@pytest.mark.parametrize(
    "events",
    [
        (dispatched(), TurnRetried(attempt=1, error=RetryError(message="x", is_retryable=True))),
        (
            dispatched(),
            ExecutionRecovered(attempt_id="att_msg_a", action="retried", detail="x"),
            claimed(2, "run_b"),
        ),
        (CompactionEnded(message_id="msg_c", reason="auto", text="sum", recent=""),),
        (
            dispatched(),
            step_started(),
            StepFailed(assistant_message_id="msg_a", error=ErrorInfo(message="x")),
            ResumeRequested(),
        ),
        (dispatched(), InterruptRequested(), ResumeRequested()),
    ],
    ids=["retry", "take-over", "compaction", "failure and resume", "interrupt and resume"],
)
def test_options_survive(events: tuple[Any, ...]) -> None:
    """P-18: a retry, a take-over, a compaction, and a resume after a failure or an interrupt."""
    options = {"agent": "plan", "model": OTHER, "tools": ("read",), "system": "x"}

    session = then(working(options), *events)

    assert activity_after(session) == Activity(("x",), "plan", OTHER, ("read",))


def test_a_prompt_after_a_failure_begins_without_the_options_of_the_failed_one() -> None:
    failed = then(
        working({"agent": "plan"}),
        dispatched(),
        step_started(),
        StepFailed(assistant_message_id="msg_a", error=ErrorInfo(message="x")),
        admitted("msg_9"),
    )

    assert activity_after(failed, eligible_inputs(failed)) == NO_OPTIONS
    assert then(failed, promoted("msg_9")).activity == NO_OPTIONS


def test_of_several_prompts_the_latest_that_names_an_option_decides_it() -> None:
    """P-18: two steers in one turn; the system texts hold together."""
    session = working(
        {"agent": "plan", "tools": ("read",), "system": "one"},
        {"model": OTHER, "system": "two"},
        {},
        {"agent": "build", "output_schema": {"type": "object"}},
    )

    assert session.activity == Activity(
        ("one", "two"), "build", OTHER, ("read",), {"type": "object"}
    )


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "agent": st.sampled_from(["plan", "build"]),
        "model": st.sampled_from([MODEL, OTHER]),
        "system": st.sampled_from(["a", "b"]),
        "tools": st.sampled_from([(), ("read",)]),
    },
)


@PROPERTY
@for_all(st.lists(OPTIONS, min_size=1, max_size=4), st.sampled_from([(), (1,)]))
def test_what_a_boundary_expects_is_what_its_promotions_fold_into(
    options: list[dict[str, Any]], earlier: tuple[int, ...]
) -> None:
    """P-18: the request is built with the options that the log has after its commit."""
    session = given(CREATED, claimed(), INITIALISED)
    session = then(session, *(joins("msg_first", agent="first", tools=("x",)) for _ in earlier))
    session = then(session, *(asks(f"msg_{i}", **each) for i, each in enumerate(options)))
    inputs = eligible_inputs(session)

    after = then(session, *(joins(item.message_id, **dict_of(item.prompt)) for item in inputs))

    assert activity_after(session, inputs) == after.activity


def dict_of(prompt: Prompt) -> dict[str, Any]:
    return {name: value for name, value in dict(prompt).items() if name != "text"}


def test_a_prompt_with_other_options_is_no_exact_retry() -> None:
    """P-18, A-15: options belong to the prompt; the order of a schema's keys does not matter."""
    schema = {"type": "object", "properties": {}}
    first = Prompt(text="hi", system="x", output_schema=schema)
    session = given(CREATED, PromptAdmitted(message_id="msg_1", prompt=first, delivery="steer"))

    def again(**options: object) -> object:
        prompt = Prompt.model_validate({"text": "hi", **options})
        return admit(session, "msg_1", prompt, "steer", resume=False)

    reordered = dict(reversed(schema.items()))
    assert again(system="x", output_schema=reordered) == ()
    assert again(system="y", output_schema=schema) == MessageIdInUse("msg_1")
    assert again(system="x") == MessageIdInUse("msg_1")


def test_the_promoted_message_shows_its_options() -> None:
    session = working({"agent": "plan", "system": "x"})

    message = session.transcript.find("msg_0")
    assert isinstance(message, UserMessage)
    assert (message.agent, message.system) == ("plan", "x")


def test_a_selection_only_narrows_the_offer() -> None:
    """P-18: names and patterns; what nobody offers is told."""
    offered = {"read": 1, "github_list": 2, "github_write": 3}

    assert select_tools(offered, None) == (offered, ())
    assert select_tools(offered, ()) == ({}, ())
    assert select_tools(offered, ("github_*", "bash")) == (
        {"github_list": 2, "github_write": 3},
        ("bash",),
    )


def system_texts(events: tuple[Any, ...]) -> list[str]:
    return [event.text for event in events if isinstance(event, ContextUpdated)]


def test_system_text_stands_behind_its_prompt_and_is_told_once() -> None:
    """P-18: the baseline stays as it is, so the cached prefix holds."""
    waiting = given(CREATED, claimed(), INITIALISED, asks("msg_1", system="In French."))

    events = prepare_turn(waiting, eligible_inputs(waiting), SAMPLE, IDS)

    assert [event.type for event in events] == ["prompt.promoted", "context.updated"]
    assert system_texts(events)[0].endswith("\n\nIn French.")
    later = then(waiting, *events, dispatched(), step_started(), *call_events(), step_ended())
    assert system_texts(prepare_turn(later, (), SAMPLE, IDS)) == []


def test_system_text_is_told_again_when_a_new_epoch_begins() -> None:
    """P-18: a compaction drops the message with the text, and the activity goes on."""
    waiting = given(CREATED, claimed(), INITIALISED, asks("msg_1", system="In French."))
    told = then(waiting, *prepare_turn(waiting, eligible_inputs(waiting), SAMPLE, IDS))
    compacted = then(
        told, CompactionEnded(message_id="msg_c", reason="auto", text="sum", recent="")
    )

    events = prepare_turn(compacted, (), SAMPLE, IDS)

    assert isinstance(events[0], ContextReplaced)
    assert events[0].baseline == (BaselinePart(key="core/date", text="core/date is monday"),)
    assert events[0].snapshot == {"core/date": SnapshotEntry(value="monday")}
    assert system_texts(events)[0].endswith("\n\nIn French.")
