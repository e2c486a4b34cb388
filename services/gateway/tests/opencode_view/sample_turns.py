"""Turns as commits, for the golden pairs of the translation."""

from collections.abc import Sequence
from typing import Final

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AttemptDispatched,
    CompactionEnded,
    CompactionRequested,
    ExecutionClaimed,
    ExecutionReleased,
    InputCancelled,
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    PromptAdmitted,
    PromptPromoted,
    QuestionAsked,
    QuestionRejected,
    RevertCommitted,
    RevertStaged,
    SessionCreated,
    SessionEvent,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import (
    CallSource,
    PermissionRequest,
    QuestionInfo,
    QuestionRequest,
    ToolSource,
)
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Recorded
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_schema.tools.content import ErrorInfo, Executor, TextContent

Commits = Sequence[tuple[SessionEvent, ...]]

SESSION: Final = "ses_1"
MODEL: Final = ModelRef(provider_id="acme", id="large")
CREATED: Final = SessionCreated(
    title="A title", project_id="prj_1", location=LocationRef(directory="/work")
)
HELLO: Final = Prompt(text="Hello")
LOCAL: Final = Executor(executed=False)


def admit(id_: str) -> PromptAdmitted:
    return PromptAdmitted(message_id=id_, prompt=HELLO, delivery="steer")


def begin(
    user: str, assistant: str, created: int, generation: int = 1, prompt: Prompt = HELLO
) -> tuple[SessionEvent, ...]:
    """A claim, the promotion of a prompt that was admitted at a time, and an attempt."""
    return (
        ExecutionClaimed(generation=generation, runner="run_1"),
        PromptPromoted(message_id=user, prompt=prompt, created=created),
        AttemptDispatched(
            attempt_id="att_1", assistant_message_id=assistant, agent="build", model=MODEL, step=1
        ),
    )


def step(assistant: str) -> StepStarted:
    return StepStarted(assistant_message_id=assistant, agent="build", model=MODEL)


def end(assistant: str, finish: str = "stop") -> StepEnded:
    tokens = Tokens(input=10, output=5)
    return StepEnded(assistant_message_id=assistant, finish=finish, cost=0.5, tokens=tokens)


def release(reason: str = "idle", generation: int = 1) -> ExecutionReleased:
    return ExecutionReleased.model_validate({"generation": generation, "reason": reason})


def call(name: str, given: dict[str, object]) -> tuple[SessionEvent, ...]:
    """A step that begins with a call."""
    start = ToolInputStarted(assistant_message_id="msg_2", call_id="call_1", name=name)
    ended = ToolInputEnded(assistant_message_id="msg_2", call_id="call_1", text="{}")
    called = ToolCalled(
        assistant_message_id="msg_2",
        call_id="call_1",
        tool=name,
        input=given,
        provider=LOCAL,
        retry="once",
    )
    return (step("msg_2"), start, ended, called)


def failed(message: str, code: str | None = None) -> ToolFailed:
    return ToolFailed(
        assistant_message_id="msg_2",
        call_id="call_1",
        error=ErrorInfo(message=message, code=code),
        provider=LOCAL,
    )


TEXT: Final[Commits] = (
    (CREATED,),
    (admit("msg_1"),),
    begin("msg_1", "msg_2", 2000),
    (step("msg_2"), TextStarted(assistant_message_id="msg_2", text_id="t1")),
    (
        TextEnded(assistant_message_id="msg_2", text_id="t1", text="Good morning."),
        end("msg_2"),
        release(),
    ),
)
PERMISSION: Final[Commits] = (
    *TEXT[:3],
    call("bash", {"command": "make test"}),
    (
        PermissionAsked(
            request=PermissionRequest(
                id="per_1",
                session_id=SESSION,
                action="bash",
                resources=("make test",),
                save=("make *",),
                source=CallSource(message_id="msg_2", call_id="call_1"),
            ),
            agent="build",
        ),
    ),
    (PermissionReplied(request_id="per_1", reply="once"),),
    (
        ToolSucceeded(
            assistant_message_id="msg_2",
            call_id="call_1",
            structured={"exit": 0},
            content=(TextContent(text="ok"),),
            provider=LOCAL,
        ),
        end("msg_2", "tool-calls"),
        release(),
    ),
)
DECLINED: Final[Commits] = (
    *PERMISSION[:5],
    (
        PermissionReplied(request_id="per_1", reply="reject"),
        InterruptRequested(declined="bash was declined"),
    ),
    (
        failed("Tool execution interrupted", "declined"),
        end("msg_2", "tool-calls"),
        release("declined"),
    ),
)
QUESTION: Final[Commits] = (
    *TEXT[:3],
    call("question", {"questions": []}),
    (
        QuestionAsked(
            request=QuestionRequest(
                id="que_1",
                session_id=SESSION,
                questions=(QuestionInfo(question="Which?", header="Which", options=()),),
                tool=ToolSource(message_id="msg_2", call_id="call_1"),
            )
        ),
    ),
    (QuestionRejected(request_id="que_1"), InterruptRequested(declined="it was dismissed")),
    (
        failed("Tool execution interrupted", "declined"),
        end("msg_2", "tool-calls"),
        release("declined"),
    ),
)
INTERRUPTED: Final[Commits] = (
    *TEXT[:4],
    (InterruptRequested(),),
    (
        TextEnded(assistant_message_id="msg_2", text_id="t1", text="Good"),
        StepFailed(
            assistant_message_id="msg_2", error=ErrorInfo(message="Provider turn interrupted")
        ),
        release("interrupted"),
    ),
)
FAILED: Final[Commits] = (
    *TEXT[:4],
    (
        TextEnded(assistant_message_id="msg_2", text_id="t1", text="Good"),
        StepFailed(assistant_message_id="msg_2", error=ErrorInfo(message="The key is wrong")),
        release("failed"),
    ),
)
COMPACTED: Final[Commits] = (
    *TEXT,
    (CompactionRequested(),),
    (
        CompactionEnded(message_id="msg_3", reason="manual", text="A summary", recent=""),
        release(),
    ),
)
REVERTED: Final[Commits] = (
    *TEXT,
    (admit("msg_3"),),
    (InputCancelled(message_id="msg_3"),),
    (admit("msg_4"),),
    begin("msg_4", "msg_5", 8000, generation=2),
    (step("msg_5"), end("msg_5"), release(generation=2)),
    (RevertStaged(revert=RevertState(message_id="msg_2")),),
    (RevertCommitted(message_id="msg_2"),),
)

UNDONE: Final[Commits] = (
    *TEXT,
    (RevertStaged(revert=RevertState(message_id="msg_1", before=True)),),
    (RevertCommitted(message_id="msg_1", withdrawn=(), before=True),),
)


def record(commits: Commits) -> list[tuple[Recorded, ...]]:
    """The commits as a log holds them, one second apart."""
    recorded: list[tuple[Recorded, ...]] = []
    seq = 0
    for number, commit in enumerate(commits, 1):
        events = []
        for event in commit:
            seq += 1
            events.append(Recorded(f"evt_{seq}", seq, number * 1000, event))
        recorded.append(tuple(events))
    return recorded
