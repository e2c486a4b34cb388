"""Structured output in a turn: how it is asked for, judged in the commit of its step, and repaired."""

from typing import Any

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    claimed,
    dispatched,
    given,
    observed,
    sample,
    step_started,
    then,
)

from fairlead_schema.events import (
    AttemptFinished,
    ContextUpdated,
    ExecutionRecovered,
    PromptAdmitted,
    PromptPromoted,
    SessionEvent,
    StepEnded,
    ToolCalled,
    ToolFailed,
    ToolSucceeded,
)
from fairlead_schema.message import AssistantMessage
from fairlead_schema.prompt import Prompt
from fairlead_schema.provider.events import (
    Finish,
    ProviderEvent,
    ProviderUsage,
    StepFinish,
    TextChunk,
    TextEnd,
    TextStart,
    ToolCall,
)
from fairlead_schema.provider.request import ForcedTool, ToolChoice
from fairlead_schema.provider.structured_output import OUTPUT_INVALID
from fairlead_schema.tools.content import Executor
from fairlead_schema.tools.request import ToolInfo
from fairlead_session.execution.recovery import settle_attempt
from fairlead_session.input.promotion import eligible_inputs
from fairlead_session.instructions.prompt_texts import COMPLAINT, STRUCTURED
from fairlead_session.next_move import DrainLimits, Rest, TakeTurn, next_move
from fairlead_session.state.activity import NO_OPTIONS
from fairlead_session.state.session import Session
from fairlead_session.structured.contract import OUTPUT_TOOL, OutputContract, OutputMode
from fairlead_session.turn.boundary import TurnIds, prepare_turn
from fairlead_session.turn.request import ModelIdentity, build
from fairlead_session.turn.step_end import end_step
from fairlead_session.turn.stream import INVALID_OUTPUT, TurnStream
from fairlead_session.turn.stream_calls import Offer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"port": {"type": "string"}},
    "required": ["port"],
}
GOOD, BAD = {"port": "Bergen"}, {"port": 7}
SAMPLE = sample(observed("core/date", "monday"))
READ = ToolInfo(name="read", description="", input_schema={}, retry="pure", revision="r")
IDENTITY = ModelIdentity(MODEL, "fast-1")


def asked() -> Session:
    prompt = Prompt.model_validate({"text": "Which port?", "schema": SCHEMA})
    promoted = PromptPromoted(message_id="msg_1", prompt=prompt, created=0)
    return given(CREATED, claimed(), INITIALISED, promoted)


def offer(mode: OutputMode, session: Session, *, tools: bool = False, final: bool = False) -> Offer:
    contract = OutputContract(SCHEMA, mode, session.activity.repairs)
    offered = {"read": READ} if tools else {}
    return Offer("build", offered, final=final, output=contract)


def stream(session: Session, mode: OutputMode, *events: ProviderEvent) -> tuple[SessionEvent, ...]:
    """What the log gets of a turn with these provider events."""
    assistant = f"msg_a{session.seq}"
    turn = TurnStream(
        assistant, "build", MODEL, offer=offer(mode, session), attempt_id=f"att_{assistant}"
    )
    written = tuple(event for item in events for event in turn.receive(item)[0])
    return (dispatched(assistant), *written, *turn.complete())


def says(text: str, finish: Finish = "stop") -> tuple[ProviderEvent, ...]:
    return (TextStart("t"), TextChunk("t", text), TextEnd("t"), StepFinish(finish, ProviderUsage()))


def gives(*values: object) -> tuple[ProviderEvent, ...]:
    calls = (ToolCall(f"call_{n}", OUTPUT_TOOL, value) for n, value in enumerate(values))
    return (*calls, StepFinish("tool-calls", ProviderUsage()))


def answer(session: Session) -> AssistantMessage:
    message = session.transcript.lines[-1].message
    assert isinstance(message, AssistantMessage)
    return message


@pytest.mark.parametrize("text", ['{"port":"Bergen"}', '```json\n{"port": "Bergen"}\n```\n'])
def test_a_native_answer_that_fits_ends_the_activity(text: str) -> None:
    """P-17: the value is on the assistant message, and the session's own options come back."""
    session = then(asked(), *stream(asked(), "native", *says(text)))

    output = answer(session).output
    assert output is not None
    assert (output.status, output.value, answer(session).finish) == ("accepted", GOOD, "stop")
    assert not session.execution.owed
    assert session.activity == NO_OPTIONS


def test_a_call_that_fits_is_settled_and_judged_with_the_end_of_its_step() -> None:
    """P-17: the call, its settlement and the judgement cannot be torn apart by a crash."""
    events = stream(asked(), "forced-tool", *gives(GOOD))
    kinds = [type(event) for event in events[-3:]]
    session = then(asked(), *events)

    assert kinds == [ToolCalled, ToolSucceeded, StepEnded]
    assert not session.calls
    assert not session.execution.owed
    assert answer(session).output is not None
    assert answer(session).finish == "stop"


@pytest.mark.parametrize(
    ("mode", "bad"),
    [
        ("native", says('{"port":7}')),
        ("native", says("The port is Bergen.")),
        ("native", says('{"port":"Ber', "length")),
        ("native", says("[" * 100_000)),
        ("native", says('{"port": NaN}')),
        ("forced-tool", gives(BAD)),
        ("forced-tool", gives("no object")),
        ("offered-tool", says("The port is Bergen.")),
    ],
)
def test_an_answer_that_does_not_fit_is_repaired_at_most_twice(
    mode: OutputMode, bad: tuple[ProviderEvent, ...]
) -> None:
    """P-17: then the prompt has failed, with a code and with all usage counted."""
    session, statuses = asked(), []
    for _ in range(3):
        assert session.execution.owed
        session = then(session, *stream(session, mode, *bad))
        output = answer(session).output
        assert output is not None
        statuses.append((output.status, output.repairs))

    assert statuses == [("rejected", 0), ("rejected", 1), ("failed", 2)]
    assert not session.execution.owed
    assert session.activity == NO_OPTIONS
    error = answer(session).error
    assert error is not None
    assert error.code == OUTPUT_INVALID
    assert answer(session).finish == INVALID_OUTPUT


def list_system_texts(session: Session) -> list[str]:
    ids = TurnIds("att_1", "msg_a", "msg_system")
    events = prepare_turn(session, (), SAMPLE, ids)
    return [event.text for event in events if isinstance(event, ContextUpdated)]


def test_the_reason_of_a_rejection_goes_back_to_the_model_once() -> None:
    """P-17: as a system message; after a call the result of the call has it."""
    native = then(asked(), *stream(asked(), "native", *says('{"port":7}')))
    (text,) = list_system_texts(native)
    assert text.startswith(COMPLAINT)
    assert "port: 7 is not of type 'string'" in text
    assert list_system_texts(then(native, ContextUpdated(message_id="msg_s", text=text))) == []

    events = stream(asked(), "forced-tool", *gives(BAD))
    (failed,) = (event for event in events if isinstance(event, ToolFailed))
    assert "port: 7 is not of type 'string'" in failed.error.message
    by_call = then(asked(), *events)
    assert list_system_texts(by_call) == []
    broken_off = then(by_call, dispatched("msg_x"), step_started("msg_x"))
    attempt = broken_off.turn.attempt
    assert attempt is not None
    recovered = then(broken_off, *settle_attempt(broken_off, attempt, "auto", "que_1"))
    assert list_system_texts(recovered) == []


def test_a_repair_does_not_count_as_a_step_and_obeys_the_budget() -> None:
    """P-17: an agent with one step can still repair its answer."""
    session = then(asked(), *stream(asked(), "native", *says("no")))

    move = next_move(session, DrainLimits(steps=1, agent="build"))
    assert isinstance(move, TakeTurn | Rest)
    assert session.turn.step == 0


def test_of_several_answers_in_one_step_the_first_that_fits_counts() -> None:
    events = stream(asked(), "forced-tool", *gives(BAD, GOOD, {"port": "Oslo"}))

    settled = [type(event) for event in events if isinstance(event, ToolFailed | ToolSucceeded)]
    assert settled == [ToolFailed, ToolSucceeded, ToolFailed]
    assert isinstance(events[-1], StepEnded)
    assert events[-1].output is not None
    assert events[-1].output.value == GOOD


def test_an_answer_beside_open_calls_waits_for_them() -> None:
    """P-17: `attempt.finished` carries the judgement, so a take-over ends the step with it."""
    events = stream(
        asked(),
        "forced-tool",
        ToolCall("call_r", "read", {}),
        ToolCall("call_o", OUTPUT_TOOL, GOOD),
        StepFinish("tool-calls", ProviderUsage()),
    )
    assert isinstance(events[-1], AttemptFinished)
    session = then(asked(), *events)
    assert [call.call_id for call in session.calls] == ["call_r"]

    done = ToolSucceeded(
        assistant_message_id=session.calls[0].assistant_message_id,
        call_id="call_r",
        structured={},
        content=(),
        provider=Executor(),
    )
    settled = then(session, done)
    assert settled.turn.attempt is not None
    ended = then(settled, *end_step(settled.turn.attempt))
    assert answer(ended).output is not None
    assert not ended.execution.owed


def test_work_with_tools_goes_on_without_a_judgement() -> None:
    events = stream(
        asked(),
        "forced-tool",
        ToolCall("call_r", "read", {}),
        StepFinish("tool-calls", ProviderUsage()),
    )

    assert isinstance(events[-1], AttemptFinished)
    assert events[-1].output is None


def test_a_take_over_in_the_middle_of_an_answer_asks_again_and_counts_no_repair() -> None:
    """P-17: whatever prefix of an answer is durable, exactly one judgement follows."""
    whole = stream(asked(), "forced-tool", *gives(GOOD))
    for length in range(1, len(whole) - 2):
        session = then(asked(), *whole[:length])
        attempt = session.turn.attempt
        assert attempt is not None
        recovered = settle_attempt(session, attempt, "auto", "que_1")
        assert isinstance(recovered[-1], ExecutionRecovered)
        session = then(session, *recovered, claimed(2, "run_b"))
        assert session.execution.owed
        assert (session.activity.output_schema, session.activity.repairs) == (SCHEMA, 0)
        again = stream(session, "forced-tool", *gives(GOOD))
        log = (*whole[:length], *recovered, *again)
        outputs = [event.output for event in log if isinstance(event, StepEnded)]
        assert [output and output.status for output in outputs] == ["accepted"]


@pytest.mark.parametrize(
    ("mode", "tools", "final", "repairs", "choice"),
    [
        ("native", True, False, 0, "auto"),
        ("forced-tool", False, False, 0, ForcedTool(OUTPUT_TOOL)),
        ("forced-tool", True, False, 0, "required"),
        ("forced-tool", True, False, 1, ForcedTool(OUTPUT_TOOL)),
        ("forced-tool", True, True, 0, ForcedTool(OUTPUT_TOOL)),
        ("offered-tool", True, False, 0, "auto"),
    ],
)
def test_a_request_asks_for_the_answer_as_its_model_can_give_it(
    mode: OutputMode,
    tools: bool,  # noqa: FBT001
    final: bool,  # noqa: FBT001
    repairs: int,
    choice: ToolChoice,
) -> None:
    """P-17: the provider's own mode, or a tool that is forced when nothing else is left to do."""
    offered = {"read": READ} if tools and not final else {}
    contract = OutputContract(SCHEMA, mode, repairs)

    request = build(asked(), IDENTITY, Offer("build", offered, final=final, output=contract))

    assert request.tool_choice == choice
    names = [tool.name for tool in request.tools]
    assert (OUTPUT_TOOL in names) == (mode != "native")
    assert request.output_schema == (SCHEMA if mode == "native" else None)


def test_the_model_is_told_what_its_answer_must_be() -> None:
    waiting = given(CREATED, claimed(), INITIALISED)
    prompt = Prompt.model_validate({"text": "Which port?", "schema": SCHEMA})
    session = then(waiting, PromptAdmitted(message_id="msg_1", prompt=prompt, delivery="steer"))
    ids = TurnIds("att_1", "msg_a", "msg_system")
    events = prepare_turn(session, eligible_inputs(session), SAMPLE, ids)
    assert [event.text for event in events if isinstance(event, ContextUpdated)] == [STRUCTURED]
