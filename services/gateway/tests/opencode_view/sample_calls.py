"""Turns with calls as commits, for the golden pairs: parallel and hosted calls, progress, files, failures."""

from typing import Final

from fairlead_schema.events import (
    ExecutionReleased,
    InterruptRequested,
    ReasoningEnded,
    ReasoningStarted,
    SessionEvent,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.tools.content import (
    ErrorInfo,
    Executor,
    FileContent,
    TextContent,
    ToolContent,
)
from services.gateway.tests.opencode_view.sample_turns import (
    DECLINED,
    INTERRUPTED,
    LOCAL,
    TEXT,
    Commits,
    begin,
    end,
    release,
    step,
)

MESSAGE: Final = "msg_2"
HOSTED: Final = Executor(executed=True)


def called(
    id_: str, name: str, given: dict[str, object], provider: Executor = LOCAL
) -> tuple[SessionEvent, ...]:
    return (
        ToolInputStarted(assistant_message_id=MESSAGE, call_id=id_, name=name),
        ToolInputEnded(assistant_message_id=MESSAGE, call_id=id_, text="{}"),
        ToolCalled(
            assistant_message_id=MESSAGE,
            call_id=id_,
            tool=name,
            input=given,
            provider=provider,
            retry=None if provider.executed else "once",
        ),
    )


def done(
    id_: str,
    *content: ToolContent,
    provider: Executor = LOCAL,
    **structured: object,
) -> ToolSucceeded:
    return ToolSucceeded(
        assistant_message_id=MESSAGE,
        call_id=id_,
        structured=structured,
        content=content,
        provider=provider,
    )


def failed(id_: str, message: str, outcome: str | None = None) -> ToolFailed:
    error = ErrorInfo.model_validate({"message": message, "outcome": outcome})
    return ToolFailed(assistant_message_id=MESSAGE, call_id=id_, error=error, provider=LOCAL)


def progressed(id_: str, text: str) -> ToolProgressed:
    return ToolProgressed(
        assistant_message_id=MESSAGE,
        call_id=id_,
        structured={},
        content=(TextContent(text=text),),
    )


def begun(id_: str) -> ToolStarted:
    return ToolStarted(assistant_message_id=MESSAGE, call_id=id_, worker="wkr_1", generation=1)


REASONED: Final[Commits] = (
    *TEXT[:3],
    (step(MESSAGE), ReasoningStarted(assistant_message_id=MESSAGE, reasoning_id="r1")),
    (
        ReasoningEnded(assistant_message_id=MESSAGE, reasoning_id="r1", text="It is early."),
        TextStarted(assistant_message_id=MESSAGE, text_id="t1"),
    ),
    (TextEnded(assistant_message_id=MESSAGE, text_id="t1", text=""), end(MESSAGE), release()),
)
"""Reasoning, and a text that stays empty."""
PARALLEL: Final[Commits] = (
    *TEXT[:3],
    (
        step(MESSAGE),
        *called("call_1", "read", {"path": "a.png"}),
        *called("call_2", "bash", {"command": "make"}),
    ),
    (begun("call_1"), begun("call_2")),
    (progressed("call_2", "one\n"),),
    (
        done(
            "call_1",
            TextContent(text="An image"),
            FileContent(uri="data:image/png;base64,AA==", mime="image/png", name="a.png"),
        ),
    ),
    (failed("call_2", "It was killed"), end(MESSAGE, "tool-calls")),
    begin("msg_1", "msg_3", 9000)[2:],
    (
        step("msg_3"),
        TextStarted(assistant_message_id="msg_3", text_id="t1"),
        TextEnded(assistant_message_id="msg_3", text_id="t1", text="It was killed."),
        end("msg_3"),
        release(),
    ),
)
"""Two calls of one step that end in their own order, one with a file, and the step after them."""
HOSTED_CALL: Final[Commits] = (
    *TEXT[:3],
    (step(MESSAGE), *called("call_1", "web_search", {"query": "weather"}, HOSTED)),
    (done("call_1", TextContent(text="Rain"), provider=HOSTED),),
    (
        TextStarted(assistant_message_id=MESSAGE, text_id="t1"),
        TextEnded(assistant_message_id=MESSAGE, text_id="t1", text="It rains."),
        end(MESSAGE),
        release(),
    ),
)
"""A call that the provider runs itself, inside the step."""
KILLED: Final[Commits] = (
    *TEXT[:3],
    (step(MESSAGE), *called("call_1", "bash", {"command": "sleep 9"})),
    (begun("call_1"), progressed("call_1", "one\n")),
    (InterruptRequested(),),
    (
        failed("call_1", "Tool execution interrupted", "unknown"),
        end(MESSAGE, "tool-calls"),
        release("interrupted"),
    ),
)
"""An interrupt while a call runs."""


def after(earlier: Commits) -> Commits:
    """Another turn, which changes nothing of the turn before it."""
    created = 1000 * (len(earlier) + 1)
    claimed = begin("msg_8", "msg_9", created, generation=2)
    admitted = TEXT[1][0].model_copy(update={"message_id": "msg_8"})
    released = ExecutionReleased(generation=2, reason="idle")
    return (*earlier, (admitted,), claimed, (step("msg_9"), end("msg_9"), released))


CALLS: Final[dict[str, Commits]] = {
    "reasoned": REASONED,
    "parallel": PARALLEL,
    "hosted": HOSTED_CALL,
    "killed": KILLED,
    "killed-then-another": after(KILLED),
    "declined-then-another": after(DECLINED),
    "interrupted-then-another": after(INTERRUPTED),
}
