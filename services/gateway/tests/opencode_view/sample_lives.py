"""What happens to sessions besides turns, as commits, for the golden pairs."""

from collections.abc import Mapping
from typing import Final

from fairlead_schema.events import (
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    InputEdited,
    ModelSwitched,
    PromptAdmitted,
    SessionArchived,
    SessionCreated,
    SessionDescribed,
    SessionMoved,
    ShellEnded,
    ShellRequested,
    ShellStarted,
    TextEnded,
    TodoUpdated,
    TurnRetried,
)
from fairlead_schema.events.asks import Todo
from fairlead_schema.events.turn import RetryError
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import AgentMention, Prompt, PromptFile, TextSpan
from services.gateway.tests.opencode_view.sample_calls import CALLS
from services.gateway.tests.opencode_view.sample_turns import (
    COMPACTED,
    CREATED,
    DECLINED,
    FAILED,
    INTERRUPTED,
    MODEL,
    PERMISSION,
    QUESTION,
    REVERTED,
    TEXT,
    UNDONE,
    Commits,
    admit,
    begin,
    end,
    release,
    step,
)

OTHER: Final = MODEL.model_copy(update={"id": "small"})
WITH_FILES: Final = PromptAdmitted(
    message_id="msg_1",
    prompt=Prompt(
        text="Look at @a.txt, @explore",
        files=(
            PromptFile(
                uri="file:///work/a.txt",
                mime="text/plain",
                name="a.txt",
                source=TextSpan(start=8, end=14, text="@a.txt"),
            ),
        ),
        agents=(AgentMention(name="explore", source=TextSpan(start=16, end=24, text="@explore")),),
    ),
    delivery="steer",
)
STEERED: Final[Commits] = (
    *TEXT[:4],
    (admit("msg_3"),),
    (
        TextEnded(assistant_message_id="msg_2", text_id="t1", text="Good morning."),
        end("msg_2"),
        begin("msg_3", "msg_4", 5000)[1],
    ),
    begin("msg_3", "msg_4", 5000)[2:],
    (step("msg_4"), end("msg_4"), release()),
)
RETRIED: Final[Commits] = (
    *TEXT[:3],
    (
        TurnRetried(attempt=1, error=RetryError(message="Slow down", is_retryable=True)),
        release("retry-later").model_copy(update={"detail": "Slow down", "wake_at": 99_000}),
    ),
)
COMPACTION_FAILED: Final[Commits] = (
    *TEXT,
    (CompactionRequested(),),
    (CompactionStarted(message_id="msg_3", reason="manual"),),
    (
        CompactionFailed(
            message_id="msg_3", reason="manual", outcome="failed", message="No summary came"
        ),
    ),
)
COMPACTED_IN_A_TURN: Final[Commits] = (
    *TEXT[:3],
    (CompactionStarted(message_id="msg_3", reason="auto"),),
    (CompactionEnded(message_id="msg_3", reason="auto", text="A summary", recent="Hello"),),
    begin("msg_1", "msg_4", 2000)[2:],
    (step("msg_4"), end("msg_4"), release()),
)
EDITED: Final[Commits] = (
    (CREATED,),
    (WITH_FILES,),
    (InputEdited(message_id="msg_1", prompt=Prompt(text="Look around"), delivery="steer"),),
)
SHELL: Final[Commits] = (
    (CREATED,),
    (ShellRequested(message_id="msg_1", call_id="call_1", command="ls", agent="build"),),
    (ShellStarted(message_id="msg_1", call_id="call_1", command="ls", agent="build"),),
    (ShellEnded(message_id="msg_1", call_id="call_1", output="a.txt\n", exit=0),),
)
DESCRIBED: Final[Commits] = (
    (CREATED,),
    (SessionDescribed(title="Mine"),),
    (SessionMoved(location=LocationRef(directory="/elsewhere")),),
    (TodoUpdated(todos=(Todo(content="Do it", status="pending", priority="high"),)),),
    (SessionArchived(),),
    (SessionDescribed(title="Nobody looks"),),
)
SWITCHED: Final[Commits] = (
    (CREATED,),
    (WITH_FILES,),
    begin("msg_1", "msg_2", 2000, prompt=WITH_FILES.prompt),
    (step("msg_2"), end("msg_2"), release()),
    (ModelSwitched(message_id="msg_3", model=OTHER),),
)
CHILD: Final[Commits] = (
    (
        SessionCreated(
            title="Look around",
            project_id="prj_1",
            location=LocationRef(directory="/work"),
            parent_id="ses_0",
        ),
    ),
    *TEXT[1:],
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
    **CALLS,
    "steered": STEERED,
    "edited": EDITED,
    "retried": RETRIED,
    "compaction-failed": COMPACTION_FAILED,
    "compacted-in-a-turn": COMPACTED_IN_A_TURN,
    "shell": SHELL,
    "described": DESCRIBED,
    "switched": SWITCHED,
    "child": CHILD,
}
