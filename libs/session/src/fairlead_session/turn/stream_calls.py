"""The tool calls of one provider stream: each is called once, and a hosted call is settled once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead_schema.events import SessionEvent, ToolCalled, ToolFailed, ToolSucceeded
from fairlead_schema.ids import CALL_ID_LENGTH_MAX, MessageId
from fairlead_schema.provider.events import ToolCall, ToolInputStart, ToolResult
from fairlead_schema.provider.structured_output import StepOutput
from fairlead_schema.tools.content import ErrorInfo, Executor, TextContent, ToolContent
from fairlead_schema.tools.request import ToolInfo
from fairlead_session.structured.contract import OUTPUT_TOOL, OutputContract


class ProtocolViolation(Exception):
    """The stream broke the rules of its protocol. This defect fails the drain."""


ANSWERED = "The answer was given already"
TOOLS_DISABLED = "Tools are disabled after the maximum agent steps"


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that a turn offers to its model, and how many calls it may make.

    A final turn offers no tools.
    """

    agent: str | None = None
    tools: Mapping[str, ToolInfo] = field(default_factory=dict)
    calls_max: int = 64
    final: bool = False
    narrowed: bool = False
    """A prompt selected these tools: no other tool may be called."""
    output: OutputContract | None = None
    """What the answer must fit, if a prompt asked for structured output."""

    @property
    def has_own_tools(self) -> bool:
        """Whether a prompt changed the tools of its turns."""
        return self.narrowed or (self.output is not None and self.output.uses_tool)


@dataclass(slots=True)
class StreamCalls:
    """The calls of the stream so far."""

    assistant_message_id: MessageId
    offer: Offer = field(default_factory=Offer)
    inputs: dict[str, str] = field(default_factory=dict)
    answers: list[ToolCall] = field(default_factory=list)
    """The calls of the tool for structured output. Nobody runs them: the end of the step judges them."""
    _called: dict[str, ToolCall] = field(default_factory=dict)
    _settled: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)

    @property
    def local(self) -> tuple[str, ...]:
        """The calls that wait for a tool worker."""
        return tuple(
            id_
            for id_, call in self._called.items()
            if not call.executed and id_ not in self._settled
        )

    @property
    def refused(self) -> bool:
        """Whether a local call was refused: the model reads the reason in its next turn."""
        return any(not call.executed for call in self._called.values())

    def begin(self, event: ToolInputStart) -> None:
        """Begin the input of a call. Raises ProtocolViolation."""
        _check_id(event.id)
        if event.id in self._called or event.id in self.inputs:
            raise ProtocolViolation(f"tool {event.id} started twice")
        self.inputs[event.id] = event.name

    def call(self, event: ToolCall) -> tuple[SessionEvent, ...]:
        """The events of a call. A call that may not run is settled at once with the reason."""
        _check_id(event.id)
        if event.id in self._called or any(call.id == event.id for call in self.answers):
            raise ProtocolViolation(f"tool {event.id} was called twice")
        if self.inputs.get(event.id, event.name) != event.name:
            raise ProtocolViolation(f"tool {event.id} changed its name to {event.name}")
        if self._is_answer(event):
            self.answers.append(event)
            return ()
        refusal = None if event.executed else self._refusal(event.name)
        self._called[event.id] = event
        called = self._called_event(event)
        if refusal is None:
            return (called,)
        self._settled.add(event.id)
        return (called, self._failure(event.id, ErrorInfo(message=refusal), Executor()))

    def settle_answers(
        self, contract: OutputContract
    ) -> tuple[tuple[SessionEvent, ...], StepOutput | None]:
        """Judge the calls that gave the answer: the first one that fits counts, the others fail."""
        events: list[SessionEvent] = []
        output: StepOutput | None = None
        for call in self.answers:
            events.append(self._called_event(call))
            if output is not None and output.status == "accepted":
                events.append(self._failure(call.id, ErrorInfo(message=ANSWERED), Executor()))
                continue
            output = contract.judge(call.input)
            events.append(self._settle_answer(call.id, output))
        return tuple(events), output

    def _settle_answer(self, id_: str, output: StepOutput) -> SessionEvent:
        if output.status != "accepted":
            error = ErrorInfo(message=f"The answer does not fit its schema: {output.error}")
            return self._failure(id_, error, Executor())
        return ToolSucceeded(
            assistant_message_id=self.assistant_message_id,
            call_id=id_,
            structured={},
            content=(TextContent(text="The answer was accepted."),),
            provider=Executor(),
        )

    def _is_answer(self, event: ToolCall) -> bool:
        contract = self.offer.output
        uses_tool = contract is not None and contract.uses_tool
        return uses_tool and event.name == OUTPUT_TOOL and not event.executed

    def _refusal(self, tool: str) -> str | None:
        if self.offer.final:
            return TOOLS_DISABLED
        if self.offer.narrowed and tool not in self.offer.tools:
            return f"The tool {tool} is not selected for this prompt"
        count = sum(not call.executed for call in self._called.values())
        limit = self.offer.calls_max
        return (
            None if count < limit else f"A turn may make {limit} tool calls; this one was not run"
        )

    def _called_event(self, event: ToolCall) -> ToolCalled:
        tool = self.offer.tools.get(event.name)
        return ToolCalled(
            assistant_message_id=self.assistant_message_id,
            call_id=event.id,
            tool=event.name,
            input=_object(event.input),
            provider=Executor(executed=event.executed, metadata=event.metadata),
            agent=None if event.executed else self.offer.agent,
            retry=tool.retry if tool else None,
            revision=tool.revision if tool else None,
        )

    def settle(self, event: ToolResult) -> tuple[SessionEvent, ...]:
        """Settle a hosted call. A repeated error writes nothing. Raises ProtocolViolation."""
        if event.id not in self._called:
            raise ProtocolViolation(f"tool {event.id} has a result but was never called")
        if event.error and event.id in self._failed:
            return ()
        if event.id in self._settled:
            raise ProtocolViolation(f"tool {event.id} was settled twice")
        self._settled.add(event.id)
        provider = Executor(executed=True, metadata=event.metadata)
        if event.error:
            self._failed.add(event.id)
            error = ErrorInfo(message=_message(event.value))
            return (self._failure(event.id, error, provider, event.value),)
        structured, content = _split_result(event.value)
        return (
            ToolSucceeded(
                assistant_message_id=self.assistant_message_id,
                call_id=event.id,
                structured=structured,
                content=content,
                result=event.value,
                provider=provider,
            ),
        )

    def fail_hosted(self, message: str) -> tuple[SessionEvent, ...]:
        """Fail every hosted call without a result."""
        unsettled = tuple(
            id_ for id_, call in self._called.items() if call.executed and id_ not in self._settled
        )
        self._settled.update(unsettled)
        error = ErrorInfo(message=message, outcome="unknown")
        return tuple(self._failure(id_, error, Executor(executed=True)) for id_ in unsettled)

    def fail_uncalled(self, message: str) -> tuple[SessionEvent, ...]:
        """Fail every input that never became a call."""
        uncalled = tuple(id_ for id_ in self.inputs if id_ not in self._called)
        error = ErrorInfo(message=message)
        return tuple(self._failure(id_, error, Executor()) for id_ in uncalled)

    def _failure(
        self, id_: str, error: ErrorInfo, provider: Executor, result: object = None
    ) -> ToolFailed:
        return ToolFailed(
            assistant_message_id=self.assistant_message_id,
            call_id=id_,
            error=error,
            result=result,
            provider=provider,
        )


def _check_id(id_: str) -> None:
    """Raises ProtocolViolation for an id that no event can hold."""
    if not 1 <= len(id_) <= CALL_ID_LENGTH_MAX:
        raise ProtocolViolation(f"a tool's id is {len(id_)} characters long")


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}


def _split_result(value: object) -> tuple[dict[str, Any], tuple[ToolContent, ...]]:
    if isinstance(value, str):
        return {}, (TextContent(text=value),)
    return _object(value), ()


def _message(value: object) -> str:
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        return str(value["message"])
    return value if isinstance(value, str) else "The provider's tool failed"
