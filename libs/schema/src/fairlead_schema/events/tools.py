"""Events of a tool call: input, call, start, progress, one settlement."""

from typing import Any, ClassVar, Final

from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.tools.content import ErrorInfo, Executor, Json, RetryClass, ToolContent

NOBODY: Final[WorkerId] = "wkr_nobody"
"""The worker of a call that was given back."""


class ToolInputStarted(Event):
    type: ClassVar[str] = "tool.input.started"
    assistant_message_id: MessageId
    call_id: CallId
    name: str


class ToolInputEnded(Event):
    type: ClassVar[str] = "tool.input.ended"
    assistant_message_id: MessageId
    call_id: CallId
    text: str


class ToolCalled(Event):
    type: ClassVar[str] = "tool.called"
    assistant_message_id: MessageId
    call_id: CallId
    tool: str
    input: dict[str, Any]
    provider: Executor
    agent: str | None = None
    """The agent of the calling turn. Its permissions decide."""
    retry: RetryClass | None = None
    revision: str | None = None


class ToolStarted(Event):
    """A worker is about to run the call. After this event a `once` tool never runs again.

    A start by `NOBODY` gives the call back: its worker left in good order before the call ended.
    """

    type: ClassVar[str] = "tool.started"
    visibility: ClassVar[Visibility] = "private"
    assistant_message_id: MessageId
    call_id: CallId
    worker: WorkerId
    generation: int


class ToolDeferred(Event):
    """The worker left the call in a queue. The queue's service must settle it before `until`."""

    type: ClassVar[str] = "tool.deferred"
    visibility: ClassVar[Visibility] = "private"
    assistant_message_id: MessageId
    call_id: CallId
    until: int


class ToolProgressed(Event):
    type: ClassVar[str] = "tool.progress"
    assistant_message_id: MessageId
    call_id: CallId
    structured: dict[str, Any]
    content: tuple[ToolContent, ...]


class ToolSucceeded(Event):
    type: ClassVar[str] = "tool.succeeded"
    assistant_message_id: MessageId
    call_id: CallId
    structured: dict[str, Any]
    content: tuple[ToolContent, ...]
    output_paths: tuple[str, ...] | None = None
    result: Json | None = None
    provider: Executor


class ToolFailed(Event):
    type: ClassVar[str] = "tool.failed"
    assistant_message_id: MessageId
    call_id: CallId
    error: ErrorInfo
    result: Json | None = None
    provider: Executor
