"""Sessions that grow round by round, and the request of every turn."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.context import BaselinePart
from fairlead_schema.events import (
    AttemptDispatched,
    ContextInitialised,
    ContextUpdated,
    PromptPromoted,
    ReasoningEnded,
    ReasoningStarted,
    SessionCreated,
    SessionEvent,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt, PromptFile
from fairlead_schema.provider.request import ModelRequest
from fairlead_schema.record import Draft, record
from fairlead_schema.tools.content import ErrorInfo, Executor, FileContent, TextContent
from fairlead_schema.tools.request import ToolInfo
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.session import Session
from fairlead_session.turn.request import ModelIdentity, build
from fairlead_session.turn.stream_calls import Offer

MODEL: Final = ModelRef(provider_id="acme", id="fast")
PNG: Final = "data:image/png;base64,iVBORw0KGgo="
READ: Final = ToolInfo(
    name="read",
    description="Reads.",
    input_schema={"type": "object"},
    retry="pure",
    revision="1",
)
OFFER: Final = Offer("build", {"read": READ})
THOUGHTS: Final[tuple[dict[str, Any] | None, ...]] = (
    None,
    {"anthropic": {"signature": "s"}},
    {"item_id": "rs_1", "encrypted_content": "e"},
    {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0}]},
)
HOSTED: Final = Executor(
    executed=True, metadata={"anthropic": {"type": "server_tool_use", "id": "h"}}
)
HOSTED_RESULT: Final = Executor(
    executed=True, metadata={"anthropic": {"type": "web_search_tool_result"}}
)


@dataclass(frozen=True)
class Answer:
    """What the model says in one turn, and how that ends."""

    text: str
    thought: dict[str, Any] | None
    local: tuple[str, ...]
    hosted: bool
    failed: bool


@dataclass(frozen=True)
class Round:
    """What is new at one boundary, and what the model answers."""

    prompts: tuple[tuple[str, bool], ...]
    update: str
    answer: Answer


def requests(history: list[Round], model: str, options: dict[str, Any]) -> Iterator[ModelRequest]:
    """The request of every turn of a session that grows by these rounds."""
    identity = ModelIdentity(MODEL, model, system="Be careful.", options=options)
    session = then(
        Session(id="ses_1"),
        SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w")),
        ContextInitialised(baseline=(BaselinePart(key="core/date", text="Monday"),), snapshot={}),
        PromptPromoted(message_id="msg_0", prompt=Prompt(text="begin"), created=0),
    )
    for at, round_ in enumerate(history):
        session = then(session, *_boundary(at, round_))
        yield build(session, identity, OFFER)
        session = then(session, *_answer_events(f"msg_a{at}", round_.answer))


def then(session: Session, *events: SessionEvent) -> Session:
    drafts = tuple(Draft("evt", 1, event) for event in events)
    for recorded in record(drafts, after=session.seq):
        session = evolve(session, recorded)
    return session


def _boundary(at: int, round_: Round) -> Iterator[SessionEvent]:
    for number, (text, file) in enumerate(round_.prompts):
        files = (PromptFile(uri=PNG, mime="image/png"),) if file else None
        prompt = Prompt(text=text or "x", files=files)
        yield PromptPromoted(message_id=f"msg_{at}_{number}", prompt=prompt, created=0)
    if round_.update:
        yield ContextUpdated(message_id=f"msg_s{at}", text=round_.update)
    yield AttemptDispatched(
        attempt_id=f"att_{at}",
        assistant_message_id=f"msg_a{at}",
        agent="build",
        model=MODEL,
        step=1,
    )


def _answer_events(id_: str, answer: Answer) -> Iterator[SessionEvent]:
    yield StepStarted(assistant_message_id=id_, agent="build", model=MODEL)
    if answer.thought is not None:
        yield ReasoningStarted(assistant_message_id=id_, reasoning_id="r")
        yield ReasoningEnded(
            assistant_message_id=id_,
            reasoning_id="r",
            text="hm",
            provider_metadata=answer.thought,
        )
    yield TextStarted(assistant_message_id=id_, text_id="t")
    yield TextEnded(assistant_message_id=id_, text_id="t", text=answer.text)
    if answer.hosted:
        yield from _call_events(id_, f"h_{id_}", "web_search", HOSTED)
        yield ToolSucceeded(
            assistant_message_id=id_,
            call_id=f"h_{id_}",
            structured={},
            content=(),
            result=[{"url": "u"}],
            provider=HOSTED_RESULT,
        )
    for number, kind in enumerate(answer.local):
        call_id = f"c{number}_{id_}"
        yield from _call_events(id_, call_id, "read", Executor())
        yield _settlement(id_, call_id, kind)
    if answer.failed:
        yield StepFailed(assistant_message_id=id_, error=ErrorInfo(message="cut"))
    else:
        yield StepEnded(assistant_message_id=id_, finish="stop", cost=0, tokens=Tokens())


def _call_events(id_: str, call_id: str, tool: str, by: Executor) -> Iterator[SessionEvent]:
    yield ToolInputStarted(assistant_message_id=id_, call_id=call_id, name=tool)
    yield ToolCalled(
        assistant_message_id=id_, call_id=call_id, tool=tool, input={"p": 1}, provider=by
    )


def _settlement(id_: str, call_id: str, kind: str) -> SessionEvent:
    if kind == "failed":
        error = ErrorInfo(message="denied")
        return ToolFailed(
            assistant_message_id=id_, call_id=call_id, error=error, provider=Executor()
        )
    text, image = TextContent(text="out"), FileContent(uri=PNG, mime="image/png")
    content = {"text": (text,), "json": (), "media": (text, image)}[kind]
    return ToolSucceeded(
        assistant_message_id=id_,
        call_id=call_id,
        structured={"n": 1},
        content=content,
        provider=Executor(),
    )
