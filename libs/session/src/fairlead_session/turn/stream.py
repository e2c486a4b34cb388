"""The stream of one turn: provider events become durable events and live deltas.

The code is deterministic and does no I/O: the runner feeds it events and writes what it returns.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.delta import Delta, OpenText
from fairlead_schema.events import (
    AttemptFinished,
    SessionEvent,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
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
from fairlead_schema.provider.structured_output import StepOutput
from fairlead_schema.tools.content import ErrorInfo
from fairlead_session.execution.recovery import INTERRUPTED_TOOL, INTERRUPTED_TURN
from fairlead_session.structured.contract import NO_CALL
from fairlead_session.turn.stream_blocks import BlockStart, StreamBlocks
from fairlead_session.turn.stream_calls import Offer, ProtocolViolation, StreamCalls
from fairlead_session.turn.usage import TokenPrice, cost, tokens

PAUSE: Final = "pause"
INVALID_OUTPUT: Final = "invalid-output"
"""How a step ends whose structured output does not fit."""
NO_RESULT: Final = "Provider did not return a tool result"
NO_FINISH: Final = "The provider's stream ended without finishing"

StreamOutput: TypeAlias = tuple[tuple[SessionEvent, ...], Delta | None]


@dataclass(slots=True)
class TurnStream:
    """The state of one turn's stream."""

    assistant_message_id: MessageId
    agent: str
    model: ModelRef
    price: TokenPrice = field(default_factory=TokenPrice)
    started: bool = False
    failed: bool = False
    over: bool = False
    finish: StepFinish | None = None
    offer: Offer = field(default_factory=Offer)
    attempt_id: AttemptId = "att_unnamed"
    snapshot: str | None = None
    """The files before the step, if there is a snapshot of them."""
    _blocks: StreamBlocks = field(init=False)
    _calls: StreamCalls = field(init=False)
    _texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._blocks = StreamBlocks(self.assistant_message_id)
        self._calls = StreamCalls(self.assistant_message_id, self.offer)

    @property
    def local_calls(self) -> tuple[str, ...]:
        """The calls that Fairlead, not the provider, executes."""
        return self._calls.local

    def so_far(self) -> tuple[OpenText, ...]:
        """The text of every open block, for readers that came late."""
        return self._blocks.so_far()

    def receive(self, event: ProviderEvent) -> StreamOutput:
        """The durable events and the live delta of one provider event. Raises ProtocolViolation."""
        if self.failed:
            return (), None
        match event:
            case TextStart() | ReasoningStart() | ToolInputStart():
                return self._start_block(event), None
            case TextChunk() | ReasoningChunk() | ToolInputChunk():
                return (), self._blocks.add_chunk(event)
            case TextEnd() | ReasoningEnd() | ToolInputEnd():
                ended = (self._blocks.end(event),)
                self._keep_texts(ended)
                return ended, None
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
                reason = INTERRUPTED_TOOL if event.in_stream else NO_RESULT
                error = ErrorInfo(message=event.message, code=event.kind)
                return self._fail(error, reason, raised=not event.in_stream), None
            case _:
                assert_never(event)

    def complete(self) -> tuple[SessionEvent, ...]:
        """End the stream: close open blocks, and end the step unless it has failed."""
        self.over = True
        if self.failed or (self.finish is None and not self.started):
            return ()
        if self.finish is None:
            self.failed = True
            return self._fail(ErrorInfo(message=NO_FINISH), NO_RESULT)
        usage = tokens(self.finish.usage)
        price = cost(usage, self.price)
        closed = self._blocks.flush()
        answered, output = self._judge_output(closed, self.finish.finish)
        finish = final_finish(self.finish.finish, output)
        before = (
            *self._start_step(),
            *closed,
            *self._calls.fail_hosted(NO_RESULT),
            *answered,
        )
        if self._calls.local:
            return (*before, self._finish_attempt(finish, price, usage, output=output))
        ended = StepEnded(
            assistant_message_id=self.assistant_message_id,
            finish=finish,
            cost=price,
            tokens=usage,
            output=output,
            snapshot=self.snapshot,
            files=None if self.snapshot is None else (),
        )
        return (*before, ended)

    def _judge_output(
        self, closed: tuple[SessionEvent, ...], finish: str
    ) -> tuple[tuple[SessionEvent, ...], StepOutput | None]:
        """The judgement of the answer, in the commit that ends the step. None: no answer yet."""
        contract = self.offer.output
        if contract is None:
            return (), None
        self._keep_texts(closed)
        if self._calls.answers:
            return self._calls.settle_answers(contract)
        if self._calls.local or self._calls.refused or finish == PAUSE:
            return (), None
        if contract.uses_tool:
            return (), contract.reject(NO_CALL)
        return (), contract.judge_text("".join(self._texts), finish)

    def _keep_texts(self, events: tuple[SessionEvent, ...]) -> None:
        self._texts += (event.text for event in events if isinstance(event, TextEnded))

    def interrupt(self) -> tuple[SessionEvent, ...]:
        """Stop the turn: keep the output so far, and fail the step. A complete stream stays as it is."""
        if self.failed or self.over or not self.started:
            return ()
        self.failed = True
        closed = (*self._blocks.flush(), *self._calls.fail_uncalled(INTERRUPTED_TOOL))
        error = ErrorInfo(message=INTERRUPTED_TURN)
        return (*closed, *self._fail(error, INTERRUPTED_TOOL, await_calls=False))

    def _start_step(self) -> tuple[SessionEvent, ...]:
        if self.started:
            return ()
        self.started = True
        return (
            StepStarted(
                assistant_message_id=self.assistant_message_id,
                agent=self.agent,
                model=self.model,
                snapshot=self.snapshot,
            ),
        )

    def _start_block(self, event: BlockStart) -> tuple[SessionEvent, ...]:
        self._blocks.check_new(event)
        if isinstance(event, ToolInputStart):
            self._calls.begin(event)
        return (*self._start_step(), self._blocks.start(event))

    def _call(self, event: ToolCall) -> tuple[SessionEvent, ...]:
        """A call that streamed no input gets an empty input."""
        called = self._calls.call(event)
        owner, before = self.assistant_message_id, self._start_step()
        ended = self._blocks.end_tool_input(event.id)
        if ended is not None:
            return (*before, ended, *called)
        if event.id in self._calls.inputs:
            return (*before, *called)
        return (
            *before,
            ToolInputStarted(assistant_message_id=owner, call_id=event.id, name=event.name),
            ToolInputEnded(assistant_message_id=owner, call_id=event.id, text=""),
            *called,
        )

    def _fail(
        self, error: ErrorInfo, call_reason: str, *, await_calls: bool = True, raised: bool = False
    ) -> tuple[SessionEvent, ...]:
        """Fail the step. While local calls are open, the step fails only after they are settled."""
        before = (*self._start_step(), *self._blocks.flush(), *self._calls.fail_hosted(call_reason))
        if await_calls and self._calls.local:
            return (*before, self._finish_attempt("error", 0.0, Tokens(), error, raised=raised))
        failed = StepFailed(
            assistant_message_id=self.assistant_message_id, error=error, raised=raised or None
        )
        return (*before, failed)

    def _finish_attempt(
        self,
        finish: str,
        price: float,
        usage: Tokens,
        error: ErrorInfo | None = None,
        *,
        raised: bool = False,
        output: StepOutput | None = None,
    ) -> AttemptFinished:
        """The stream is complete while local calls are open. The step ends after they are settled."""
        return AttemptFinished(
            attempt_id=self.attempt_id,
            assistant_message_id=self.assistant_message_id,
            finish=finish,
            cost=price,
            tokens=usage,
            error=error,
            raised=raised or None,
            output=output,
        )


def final_finish(finish: str, output: StepOutput | None) -> str:
    """How a step ends for its readers: an accepted answer ends the work, also if a call gave it."""
    if output is None:
        return finish
    return "stop" if output.status == "accepted" else INVALID_OUTPUT
