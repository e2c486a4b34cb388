"""Publication: one provider stream becomes durable events and live deltas.

Starts and ends are durable and ends hold the full value; what lies between is broadcast live.
Deterministic and without I/O: the shell feeds it what arrives and writes what it says.
"""

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, assert_never

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.delta import Delta, ReasoningDelta, TextDelta, ToolInputDelta
from fairlead_schema.events import (
    AttemptFinished,
    ReasoningEnded,
    ReasoningStarted,
    SessionEvent,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolInputEnded,
    ToolInputStarted,
)
from fairlead_schema.ids import AttemptId, MessageId
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ReasoningChunk,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    TextChunk,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)
from fairlead_schema.tools.content import ErrorInfo
from fairlead_session.execution.recovery import INTERRUPTED_TOOL, INTERRUPTED_TURN
from fairlead_session.turn.stream_calls import Offer, ProtocolViolation, StreamCalls
from fairlead_session.turn.usage import TokenPrice, cost, tokens

NO_RESULT = "Provider did not return a tool result"
# Far beyond every answer, and about what one commit can hold: a stream may have no end.
BLOCK_LENGTH_MAX: Final = 4 * 1024 * 1024

StreamOutput: TypeAlias = tuple[tuple[SessionEvent, ...], Delta | None]


@dataclass(slots=True)
class _Block:
    chunks: list[str] = field(default_factory=list)
    length: int = 0

    @property
    def text(self) -> str:
        return "".join(self.chunks)


@dataclass(slots=True)
class TurnStream:
    """One turn's stream so far."""

    assistant_message_id: MessageId
    agent: str
    model: ModelRef
    price: TokenPrice = field(default_factory=TokenPrice)
    started: bool = False
    failed: bool = False
    over: bool = False
    finish: StepFinish | None = None
    _open: dict[tuple[str, str], _Block] = field(default_factory=dict)
    offer: Offer = field(default_factory=Offer)
    attempt_id: AttemptId = "att_unnamed"
    _calls: StreamCalls = field(init=False)

    def __post_init__(self) -> None:
        self._calls = StreamCalls(self.assistant_message_id, self.offer)

    @property
    def local_calls(self) -> tuple[str, ...]:
        """The calls that Fairlead, not the provider, executes."""
        return self._calls.local

    def receive(self, event: ProviderEvent) -> StreamOutput:
        """What one provider event makes durable, and what it shows live."""
        if self.failed:
            return (), None
        match event:
            case TextStart() | ReasoningStart() | ToolInputStart():
                return self._begin(event), None
            case TextChunk() | ReasoningChunk() | ToolInputChunk():
                return (), self._chunk(event)
            case TextEnd() | ReasoningEnd() | ToolInputEnd():
                return (self._end(event),), None
            case ToolCall():
                return self._call(event), None
            case ToolResult():
                return self._calls.settle(event), None
            case StepFinish():
                if self.finish is not None:
                    raise ProtocolViolation("the step finished twice")
                self.finish = event
                return (), None
            case ProviderFailure():
                self.failed = True
                lost = INTERRUPTED_TOOL if event.in_stream else NO_RESULT
                return self._failure(event.message, lost, raised=not event.in_stream), None
            case _:
                assert_never(event)

    def complete(self) -> tuple[SessionEvent, ...]:
        """The end of the stream: close what is open, and the step unless it has already failed."""
        self.over = True
        if self.failed or (self.finish is None and not self.started):
            return ()
        if self.finish is None:
            self.failed = True
            return self._failure("The provider's stream ended without finishing", NO_RESULT)
        counted = tokens(self.finish.usage)
        spent = cost(counted, self.price)
        before = (*self._start(), *self._flush(), *self._calls.lost(NO_RESULT))
        if self._calls.local:
            return (*before, self._finished(self.finish.finish, spent, counted))
        ended = StepEnded(
            assistant_message_id=self.assistant_message_id,
            finish=self.finish.finish,
            cost=spent,
            tokens=counted,
        )
        return (*before, ended)

    def _finished(
        self, finish: str, spent: float, counted: Tokens, error: ErrorInfo | None = None
    ) -> AttemptFinished:
        """The stream is over but local calls are not: the step ends when they are settled."""
        return AttemptFinished(
            attempt_id=self.attempt_id,
            assistant_message_id=self.assistant_message_id,
            finish=finish,
            cost=spent,
            tokens=counted,
            error=error,
        )

    def interrupt(self) -> tuple[SessionEvent, ...]:
        """The turn was stopped: keep what was said, fail the rest. A finished one stays finished."""
        if self.failed or self.over or not self.started:
            return ()
        self.failed = True
        flushed = (*self._flush(), *self._calls.uncalled(INTERRUPTED_TOOL))
        return (*flushed, *self._failure(INTERRUPTED_TURN, INTERRUPTED_TOOL, waiting=False))

    def _start(self) -> tuple[SessionEvent, ...]:
        if self.started:
            return ()
        self.started = True
        return (
            StepStarted(
                assistant_message_id=self.assistant_message_id, agent=self.agent, model=self.model
            ),
        )

    def _begin(
        self, event: TextStart | ReasoningStart | ToolInputStart
    ) -> tuple[SessionEvent, ...]:
        kind = _KINDS[type(event)]
        if (kind, event.id) in self._open:
            raise ProtocolViolation(f"{kind} {event.id} started twice")
        if isinstance(event, ToolInputStart):
            self._calls.begin(event)
        self._open[kind, event.id] = _Block()
        return (*self._start(), self._begun(event))

    def _begun(self, event: TextStart | ReasoningStart | ToolInputStart) -> SessionEvent:
        owner = self.assistant_message_id
        match event:
            case TextStart(id=id_):
                return TextStarted(assistant_message_id=owner, text_id=id_)
            case ReasoningStart(id=id_, metadata=metadata):
                return ReasoningStarted(
                    assistant_message_id=owner, reasoning_id=id_, provider_metadata=metadata
                )
            case ToolInputStart(id=id_, name=name):
                return ToolInputStarted(assistant_message_id=owner, call_id=id_, name=name)
            case _:
                assert_never(event)

    def _chunk(self, event: TextChunk | ReasoningChunk | ToolInputChunk) -> Delta:
        kind = _KINDS[type(event)]
        block = self._open.get((kind, event.id))
        if block is None:
            raise ProtocolViolation(f"{kind} {event.id} continued before it started")
        if block.length + len(event.text) > BLOCK_LENGTH_MAX:
            raise ProtocolViolation(
                f"{kind} {event.id} is longer than {BLOCK_LENGTH_MAX} characters"
            )
        block.chunks.append(event.text)
        block.length += len(event.text)
        owner = self.assistant_message_id
        match event:
            case TextChunk(id=id_, text=text):
                return TextDelta(assistant_message_id=owner, text_id=id_, delta=text)
            case ReasoningChunk(id=id_, text=text):
                return ReasoningDelta(assistant_message_id=owner, reasoning_id=id_, delta=text)
            case ToolInputChunk(id=id_, text=text):
                return ToolInputDelta(assistant_message_id=owner, call_id=id_, delta=text)
            case _:
                assert_never(event)

    def _end(self, event: TextEnd | ReasoningEnd | ToolInputEnd) -> SessionEvent:
        kind = _KINDS[type(event)]
        block = self._open.pop((kind, event.id), None)
        if block is None:
            raise ProtocolViolation(f"{kind} {event.id} ended before it started")
        metadata = None if isinstance(event, ToolInputEnd) else event.metadata
        return self._ended(kind, event.id, block.text, metadata)

    def _ended(
        self, kind: str, id_: str, text: str, metadata: dict[str, Any] | None = None
    ) -> SessionEvent:
        owner = self.assistant_message_id
        if kind == "text":
            return TextEnded(
                assistant_message_id=owner, text_id=id_, text=text, provider_metadata=metadata
            )
        if kind == "reasoning":
            return ReasoningEnded(
                assistant_message_id=owner, reasoning_id=id_, text=text, provider_metadata=metadata
            )
        return ToolInputEnded(assistant_message_id=owner, call_id=id_, text=text)

    def _call(self, event: ToolCall) -> tuple[SessionEvent, ...]:
        called = self._calls.call(event)
        owner, before = self.assistant_message_id, self._start()
        block = self._open.pop(("tool", event.id), None)
        if block is not None:
            return (*before, self._ended("tool", event.id, block.text), *called)
        if event.id in self._calls.inputs:
            return (*before, *called)
        synthesised = (
            ToolInputStarted(assistant_message_id=owner, call_id=event.id, name=event.name),
            ToolInputEnded(assistant_message_id=owner, call_id=event.id, text=""),
        )
        return (*before, *synthesised, *called)

    def _failure(
        self, message: str, lost: str, *, waiting: bool = True, raised: bool = False
    ) -> tuple[SessionEvent, ...]:
        """The step failed. While local calls run, that is only said after they are settled."""
        error = ErrorInfo(message=message)
        before = (*self._start(), *self._flush(), *self._calls.lost(lost))
        if waiting and self._calls.local:
            finished = self._finished("error", 0.0, Tokens(), error)
            return (*before, finished.model_copy(update={"raised": raised or None}))
        failed = StepFailed(
            assistant_message_id=self.assistant_message_id, error=error, raised=raised or None
        )
        return (*before, failed)

    def _flush(self) -> tuple[SessionEvent, ...]:
        """Close open blocks with what they hold: texts, then reasoning, then tool inputs."""
        blocks, self._open = self._open, {}
        return tuple(
            self._ended(kind, id_, block.text)
            for wanted in ("text", "reasoning", "tool")
            for (kind, id_), block in blocks.items()
            if kind == wanted
        )


_KINDS: Final = {
    TextStart: "text",
    TextChunk: "text",
    TextEnd: "text",
    ReasoningStart: "reasoning",
    ReasoningChunk: "reasoning",
    ReasoningEnd: "reasoning",
    ToolInputStart: "tool",
    ToolInputChunk: "tool",
    ToolInputEnd: "tool",
}
