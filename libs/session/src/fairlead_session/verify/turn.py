"""Verifies the events of provider turns: steps, their blocks, and their tool calls."""

from collections.abc import Iterator
from typing import ClassVar, TypeAlias

from fairlead_schema.events import (
    AttemptDispatched,
    ReasoningEnded,
    ReasoningStarted,
    SessionEvent,
    ShellEnded,
    ShellStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.ids import CallId, MessageId

Findings: TypeAlias = Iterator[tuple[str, str]]
EventKinds: TypeAlias = frozenset[type[SessionEvent]]
CallKey: TypeAlias = tuple[MessageId, CallId]


class StepRules:
    """A step starts once, for the dispatched request, and ends once."""

    kinds: ClassVar[EventKinds] = frozenset({AttemptDispatched, StepStarted, StepEnded, StepFailed})

    def __init__(self) -> None:
        self._dispatched: MessageId | None = None
        self._open: MessageId | None = None
        self._started_steps: set[MessageId] = set()

    def check(self, event: SessionEvent) -> Findings:
        match event:
            case AttemptDispatched(assistant_message_id=id_):
                self._dispatched = id_
            case StepStarted(assistant_message_id=id_):
                if id_ in self._started_steps:
                    yield "step-once", f"{id_} starts a second time"
                if self._open is not None:
                    yield "step-open", f"{id_} starts while {self._open} is open"
                if id_ != self._dispatched:
                    yield "step-dispatched", f"{id_} starts, {self._dispatched} was dispatched"
                self._open = id_
                self._started_steps.add(id_)
            case StepEnded(assistant_message_id=id_) | StepFailed(assistant_message_id=id_):
                if id_ != self._open:
                    yield "step-ended", f"{id_} ends and is not open"
                self._open = None
            case _:
                pass


class BlockRules:
    """Text, reasoning and tool input end once, after their start and before the end of their step."""

    kinds: ClassVar[EventKinds] = frozenset(
        {
            TextStarted,
            TextEnded,
            ReasoningStarted,
            ReasoningEnded,
            ToolInputStarted,
            ToolInputEnded,
            StepEnded,
            StepFailed,
        }
    )

    def __init__(self) -> None:
        self._open: set[tuple[MessageId, str, str]] = set()

    def check(self, event: SessionEvent) -> Findings:
        match event:
            case TextStarted(text_id=id_) | TextEnded(text_id=id_):
                yield from self._check_block(event, "text", id_)
            case ReasoningStarted(reasoning_id=id_) | ReasoningEnded(reasoning_id=id_):
                yield from self._check_block(event, "reasoning", id_)
            case ToolInputStarted(call_id=id_) | ToolInputEnded(call_id=id_):
                yield from self._check_block(event, "input", id_)
            case StepEnded(assistant_message_id=owner) | StepFailed(assistant_message_id=owner):
                open_blocks = {key for key in self._open if key[0] == owner}
                # The input of a call whose process died has no end. The failed call closes it.
                for _owner, kind, id_ in sorted(open_blocks):
                    if kind != "input":
                        yield "block-closed", f"{kind} {id_} is open when its step ends"
                self._open -= open_blocks
            case _:
                pass

    def _check_block(
        self,
        event: TextStarted
        | TextEnded
        | ReasoningStarted
        | ReasoningEnded
        | ToolInputStarted
        | ToolInputEnded,
        kind: str,
        id_: str,
    ) -> Findings:
        key = (event.assistant_message_id, kind, id_)
        if isinstance(event, TextStarted | ReasoningStarted | ToolInputStarted):
            if key in self._open:
                yield "block-once", f"{kind} {id_} starts while it is open"
            self._open.add(key)
        elif key not in self._open:
            yield "block-started", f"{kind} {id_} ends and is not open"
        else:
            self._open.remove(key)


class CallRules:
    """A call is made once and settled at most once. A `once` call is started at most once."""

    kinds: ClassVar[EventKinds] = frozenset(
        {
            ToolInputStarted,
            ToolCalled,
            ToolStarted,
            ToolSucceeded,
            ToolFailed,
            ShellStarted,
            ShellEnded,
        }
    )

    def __init__(self) -> None:
        self.unsettled: dict[CallKey, ToolCalled | ShellStarted] = {}
        self._known: set[CallKey] = set()
        self._started: set[CallKey] = set()
        self._settled: set[CallKey] = set()

    def names(self) -> tuple[CallId, ...]:
        return tuple(call for _owner, call in self.unsettled)

    def check(self, event: SessionEvent) -> Findings:
        match event:
            case ToolInputStarted():
                self._known.add(_key(event))
            case ToolCalled():
                yield from self._check_called(event)
            case ToolStarted():
                yield from self._check_started(event)
            case ToolSucceeded() | ToolFailed() | ShellEnded():
                key = _key(event)
                if key in self._settled:
                    yield "settled-once", f"{event.call_id} is settled a second time"
                elif key not in self._known:
                    yield "settled-called", f"{event.call_id} is settled and was never called"
                self._settled.add(key)
                self.unsettled.pop(key, None)
            case ShellStarted():
                yield from self._check_called(event)
            case _:
                pass

    def _check_called(self, event: ToolCalled | ShellStarted) -> Findings:
        key = _key(event)
        if key in self.unsettled or key in self._settled:
            yield "called-once", f"{event.call_id} is called a second time"
        self._known.add(key)
        if isinstance(event, ShellStarted):
            is_run_here = event.agent is not None
        else:
            is_run_here = not event.provider.executed
        if is_run_here:
            self.unsettled[key] = event

    def _check_started(self, event: ToolStarted) -> Findings:
        key = _key(event)
        call = self.unsettled.get(key)
        if call is None:
            yield "started-unsettled", f"{event.call_id} is started and no call waits for it"
        elif key in self._started and (
            isinstance(call, ShellStarted) or call.retry in {None, "once"}
        ):
            yield "started-once", f"{event.call_id} may run once and is started again"
        self._started.add(key)


def _key(
    event: ToolInputStarted
    | ToolCalled
    | ToolStarted
    | ToolSucceeded
    | ToolFailed
    | ShellStarted
    | ShellEnded,
) -> CallKey:
    if isinstance(event, ShellStarted | ShellEnded):
        return event.message_id, event.call_id
    return event.assistant_message_id, event.call_id
