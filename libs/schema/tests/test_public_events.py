"""Events for existing clients: the differences from the log, and no others."""

import pytest

from fairlead_schema.catalog import Tokens
from fairlead_schema.delta import (
    DELTA,
    CompactionDelta,
    Delta,
    ReasoningDelta,
    TextDelta,
    ToolInputDelta,
    ToolOutputDelta,
)
from fairlead_schema.events import (
    PermissionAsked,
    PromptAdmitted,
    PromptPromoted,
    QuestionAsked,
    SessionArchived,
    SessionEvent,
    StepEnded,
    StepFailed,
    TodoUpdated,
    ToolSucceeded,
)
from fairlead_schema.events.asks import Todo
from fairlead_schema.permission import CallSource, PermissionRequest, QuestionRequest
from fairlead_schema.prompt import Prompt
from fairlead_schema.public_events import public_delta, public_event
from fairlead_schema.record import Recorded
from fairlead_schema.tools.content import ErrorInfo, Executor, TextContent


def public_wire(event: SessionEvent) -> dict[str, object]:
    return public_event("ses_1", Recorded("evt_9", 9, 2000, event)).wire()


def test_an_event_reads_with_its_place_in_the_log() -> None:
    admitted = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="hi"), delivery="queue")

    assert public_wire(admitted) == {
        "id": "evt_9",
        "type": "session.next.prompt.admitted",
        "data": {
            "timestamp": 2000,
            "sessionID": "ses_1",
            "messageID": "msg_1",
            "prompt": {"text": "hi"},
            "delivery": "queue",
        },
        "durable": {"aggregateID": "ses_1", "seq": 9, "version": 1},
    }


@pytest.mark.parametrize("delivery", ["steer", "queue"])
def test_a_promotion_reads_as_prompted_at_its_admission_time(delivery: str) -> None:
    """Q-01: decided as clients expect it."""
    event = PromptPromoted(message_id="msg_1", prompt=Prompt(text="hi"), created=1500)

    envelope = public_event("ses_1", Recorded("evt_9", 9, 2000, event), delivery=delivery)

    assert envelope.type == "session.next.prompted"
    assert envelope.data == {
        "timestamp": 1500,
        "sessionID": "ses_1",
        "messageID": "msg_1",
        "prompt": {"text": "hi"},
        "delivery": delivery,
    }


def test_a_settled_call_reads_as_tool_success() -> None:
    event = ToolSucceeded(
        assistant_message_id="msg_1",
        call_id="call",
        structured={"lines": 3},
        content=(TextContent(text="three lines"),),
        output_paths=(),
        provider=Executor(),
    )

    envelope = public_event("ses_1", Recorded("evt_9", 9, 2000, event))

    assert envelope.type == "session.next.tool.success"
    assert envelope.data == {
        "timestamp": 2000,
        "sessionID": "ses_1",
        "assistantMessageID": "msg_1",
        "callID": "call",
        "structured": {"lines": 3},
        "content": [{"type": "text", "text": "three lines"}],
        "outputPaths": [],
        "provider": {"executed": False},
    }


@pytest.mark.parametrize(
    "event",
    [
        StepEnded(assistant_message_id="msg_1", finish="stop", cost=0.5, tokens=Tokens()),
        StepFailed(assistant_message_id="msg_1", error=ErrorInfo(message="broke off")),
    ],
)
def test_the_ends_of_a_step_read_as_their_second_version(event: SessionEvent) -> None:
    """H-41."""
    assert public_wire(event)["durable"] == {"aggregateID": "ses_1", "seq": 9, "version": 2}


def test_an_asked_permission_reads_as_the_request_itself() -> None:
    """K-09, K-35: the request names its call, and hides whose rules decide."""
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        action="bash",
        resources=("rm -r build",),
        source=CallSource(message_id="msg_1", call_id="call"),
    )

    wire = public_wire(PermissionAsked(request=request, agent="build"))

    assert wire["type"] == "permission.v2.asked"
    assert wire["data"] == {"timestamp": 2000, **request.wire()}


def test_an_asked_question_reads_as_the_request_itself() -> None:
    request = QuestionRequest(id="que_1", session_id="ses_1", questions=())

    wire = public_wire(QuestionAsked(request=request))

    assert wire["type"] == "question.v2.asked"
    assert wire["data"] == {"timestamp": 2000, **request.wire()}


def test_todos_read_under_their_own_name() -> None:
    todo = Todo(content="Read the file", status="pending", priority="high")

    wire = public_wire(TodoUpdated(todos=(todo,)))

    assert wire["type"] == "todo.updated"
    assert wire["data"] == {"timestamp": 2000, "sessionID": "ses_1", "todos": [todo.wire()]}


@pytest.mark.parametrize(
    ("delta", "data"),
    [
        (
            TextDelta(assistant_message_id="msg_1", text_id="t", delta="he"),
            {"assistantMessageID": "msg_1", "textID": "t", "delta": "he"},
        ),
        (
            ReasoningDelta(assistant_message_id="msg_1", reasoning_id="r", delta="hm"),
            {"assistantMessageID": "msg_1", "reasoningID": "r", "delta": "hm"},
        ),
        (
            ToolInputDelta(assistant_message_id="msg_1", call_id="c", delta="{"),
            {"assistantMessageID": "msg_1", "callID": "c", "delta": "{"},
        ),
        (
            ToolOutputDelta(assistant_message_id="msg_1", call_id="c", delta="ok\n"),
            {"assistantMessageID": "msg_1", "callID": "c", "delta": "ok\n"},
        ),
        (
            CompactionDelta(message_id="msg_1", text="## Goal"),
            {"messageID": "msg_1", "text": "## Goal"},
        ),
    ],
)
def test_a_delta_reads_live_and_without_a_place_in_the_log(
    delta: Delta, data: dict[str, str]
) -> None:
    assert public_delta("ses_1", "evt_9", delta, at=2000).wire() == {
        "id": "evt_9",
        "type": f"session.next.{delta.type}",
        "data": {"timestamp": 2000, "sessionID": "ses_1", **data},
    }
    assert DELTA.validate_python(delta.wire()) == delta


def test_the_caller_of_an_event_is_metadata_that_older_clients_ignore() -> None:
    event = SessionArchived()

    by_a_key = public_event("ses_1", Recorded("evt_1", 7, 1000, event, "key:ci")).wire()
    by_nobody = public_event("ses_1", Recorded("evt_1", 7, 1000, event)).wire()

    assert by_a_key.pop("metadata") == {"by": "key:ci"}
    assert by_a_key == by_nobody
