"""Turns as commits, for the golden pairs of the translation."""

from collections.abc import Mapping, Sequence
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


def _admit(id_: str) -> PromptAdmitted:
    return PromptAdmitted(message_id=id_, prompt=HELLO, delivery="steer")


def _begin(
    user: str, assistant: str, created: int, generation: int = 1
) -> tuple[SessionEvent, ...]:
    return (
        ExecutionClaimed(generation=generation, runner="run_1"),
        PromptPromoted(message_id=user, prompt=HELLO, created=created),
        AttemptDispatched(
            attempt_id="att_1", assistant_message_id=assistant, agent="build", model=MODEL, step=1
        ),
    )


def _step(assistant: str) -> StepStarted:
    return StepStarted(assistant_message_id=assistant, agent="build", model=MODEL)


def _end(assistant: str, finish: str = "stop") -> StepEnded:
    tokens = Tokens(input=10, output=5)
    return StepEnded(assistant_message_id=assistant, finish=finish, cost=0.5, tokens=tokens)


def _release(reason: str = "idle", generation: int = 1) -> ExecutionReleased:
    return ExecutionReleased.model_validate({"generation": generation, "reason": reason})


def _call(name: str, given: dict[str, object]) -> tuple[SessionEvent, ...]:
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
    return (_step("msg_2"), start, ended, called)


def _failed(message: str, code: str | None = None) -> ToolFailed:
    return ToolFailed(
        assistant_message_id="msg_2",
        call_id="call_1",
        error=ErrorInfo(message=message, code=code),
        provider=LOCAL,
    )


TEXT: Final[Commits] = (
    (CREATED,),
    (_admit("msg_1"),),
    _begin("msg_1", "msg_2", 2000),
    (_step("msg_2"), TextStarted(assistant_message_id="msg_2", text_id="t1")),
    (
        TextEnded(assistant_message_id="msg_2", text_id="t1", text="Good morning."),
        _end("msg_2"),
        _release(),
    ),
)
PERMISSION: Final[Commits] = (
    *TEXT[:3],
    _call("bash", {"command": "make test"}),
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
        _end("msg_2", "tool-calls"),
        _release(),
    ),
)
DECLINED: Final[Commits] = (
    *PERMISSION[:5],
    (
        PermissionReplied(request_id="per_1", reply="reject"),
        InterruptRequested(declined="bash was declined"),
    ),
    (
        _failed("Tool execution interrupted", "declined"),
        _end("msg_2", "tool-calls"),
        _release("declined"),
    ),
)
QUESTION: Final[Commits] = (
    *TEXT[:3],
    _call("question", {"questions": []}),
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
        _failed("Tool execution interrupted", "declined"),
        _end("msg_2", "tool-calls"),
        _release("declined"),
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
        _release("interrupted"),
    ),
)
FAILED: Final[Commits] = (
    *TEXT[:4],
    (
        TextEnded(assistant_message_id="msg_2", text_id="t1", text="Good"),
        StepFailed(assistant_message_id="msg_2", error=ErrorInfo(message="The key is wrong")),
        _release("failed"),
    ),
)
COMPACTED: Final[Commits] = (
    *TEXT,
    (CompactionRequested(),),
    (
        CompactionEnded(message_id="msg_3", reason="manual", text="A summary", recent=""),
        _release(),
    ),
)
REVERTED: Final[Commits] = (
    *TEXT,
    (_admit("msg_3"),),
    (InputCancelled(message_id="msg_3"),),
    (_admit("msg_4"),),
    _begin("msg_4", "msg_5", 8000, generation=2),
    (_step("msg_5"), _end("msg_5"), _release(generation=2)),
    (RevertStaged(revert=RevertState(message_id="msg_2")),),
    (RevertCommitted(message_id="msg_2"),),
)

UNDONE: Final[Commits] = (
    *TEXT,
    (RevertStaged(revert=RevertState(message_id="msg_1", before=True)),),
    (RevertCommitted(message_id="msg_1", withdrawn=(), before=True),),
)

TURNS: Final[Mapping[str, Commits]] = {
    "text": TEXT,
    "permission": PERMISSION,
    "declined": DECLINED,
    "question": QUESTION,
    "interrupted": INTERRUPTED,
    "failed": FAILED,
    "compacted": COMPACTED,
    "reverted": REVERTED,
    "undone": UNDONE,
}


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
