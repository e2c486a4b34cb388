"""The life of a tool call inside its assistant message."""

from typing import Final, TypedDict

import pytest
from libs.session.tests.conftest import CREATED, assistant_of, given, ms, step_started

from fairlead_schema.events import (
    SessionEvent,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.message import CallSpan, ToolBlock
from fairlead_schema.tools.content import (
    CallExecutor,
    CompletedCall,
    ErrorInfo,
    Executor,
    FailedCall,
    PendingCall,
    RunningCall,
    TextContent,
)


class _Mine(TypedDict):
    assistant_message_id: str
    call_id: str


HALF = (TextContent(text="half"),)
OUT = (TextContent(text="out"),)


MINE: Final[_Mine] = {"assistant_message_id": "msg_a", "call_id": "c"}


STARTED = ToolInputStarted(**MINE, name="read")
ENDED = ToolInputEnded(**MINE, text='{"a":1}')
CALLED = ToolCalled(**MINE, tool="read", input={"a": 1}, provider=Executor(metadata={"call": 1}))
PROGRESSED = ToolProgressed(**MINE, structured={"n": 1}, content=HALF)
SUCCEEDED = ToolSucceeded(
    **MINE,
    structured={"n": 2},
    content=OUT,
    output_paths=("/o",),
    provider=Executor(executed=False, metadata={"result": 2}),
)
FAILED = ToolFailed(**MINE, error=ErrorInfo(message="no"), provider=Executor())


def call(*events: SessionEvent) -> ToolBlock:
    (block,) = assistant_of(given(CREATED, step_started(), STARTED, *events)).content
    assert isinstance(block, ToolBlock)
    return block


def test_streamed_input_is_kept_as_raw_text_while_pending() -> None:
    """I-12: the text of the input, until the call."""
    assert call().state == PendingCall()
    assert call(ENDED).state == PendingCall(input='{"a":1}')


def test_a_call_runs_with_its_parsed_input() -> None:
    """I-12: empty structure and content, and the time it ran; raw text comes too late."""
    running = call(ENDED, CALLED, ToolInputEnded(**MINE, text="late"))

    assert running.state == RunningCall(input={"a": 1})
    assert running.time == CallSpan(created=ms(3), ran=ms(5))


def test_progress_shows_what_there_is_so_far() -> None:
    """I-12: only a running call makes progress."""
    assert call(CALLED, PROGRESSED).state == RunningCall(
        input={"a": 1}, structured={"n": 1}, content=HALF
    )
    assert call(PROGRESSED).state == PendingCall()


def test_a_started_call_looks_the_same_to_readers() -> None:
    """I-12: that a worker took it is private bookkeeping."""
    started = ToolStarted(**MINE, worker="wkr_1", generation=1)

    assert call(CALLED, started).state == call(CALLED).state


def test_a_success_settles_a_running_call() -> None:
    """I-13, I-15: the call's metadata stays, the result's is kept beside it."""
    done = call(CALLED, SUCCEEDED)

    assert done.state == CompletedCall(
        input={"a": 1}, structured={"n": 2}, content=OUT, output_paths=("/o",)
    )
    assert done.provider == CallExecutor(metadata={"call": 1}, result_metadata={"result": 2})
    assert done.time.completed == ms(5)


def test_a_failure_keeps_what_the_call_had() -> None:
    """I-13: input and progress stay beside the error."""
    assert call(CALLED, PROGRESSED, FAILED).state == FailedCall(
        input={"a": 1}, structured={"n": 1}, content=HALF, error=ErrorInfo(message="no")
    )


def test_a_call_that_never_ran_fails_with_an_empty_input() -> None:
    """I-14: whatever raw text there was is not its input."""
    assert call(ENDED, FAILED).state == FailedCall(input={}, error=ErrorInfo(message="no"))


@pytest.mark.parametrize(
    "events",
    [
        (SUCCEEDED,),
        (CALLED, SUCCEEDED, FAILED),
        (CALLED, FAILED, SUCCEEDED),
        (CALLED, SUCCEEDED, SUCCEEDED),
        (CALLED, SUCCEEDED, CALLED),
        (FAILED, CALLED),
    ],
)
def test_what_comes_out_of_order_changes_nothing(events: tuple[SessionEvent, ...]) -> None:
    """I-13: a settled call stays as it was settled, and a pending one cannot succeed."""
    assert call(*events).state == call(*events[:-1]).state


@pytest.mark.parametrize(("at_call", "at_result"), [(True, False), (False, True), (True, True)])
def test_settlement_never_downgrades_who_executed(*, at_call: bool, at_result: bool) -> None:
    """I-15: once the provider is known to have executed it, it stays so."""
    called = CALLED.model_copy(update={"provider": Executor(executed=at_call)})
    done = SUCCEEDED.model_copy(update={"provider": Executor(executed=at_result)})

    provider = call(called, done).provider

    assert provider is not None
    assert provider.executed
