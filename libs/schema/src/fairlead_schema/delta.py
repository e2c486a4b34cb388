"""Deltas: live fragments of an answer. They are broadcast once, never stored, never replayed."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from fairlead_schema.ids import CallId, MessageId
from fairlead_schema.model import Model


class TextDelta(Model):
    type: Literal["text.delta"] = "text.delta"
    assistant_message_id: MessageId
    text_id: str
    delta: str


class ReasoningDelta(Model):
    type: Literal["reasoning.delta"] = "reasoning.delta"
    assistant_message_id: MessageId
    reasoning_id: str
    delta: str


class ToolInputDelta(Model):
    type: Literal["tool.input.delta"] = "tool.input.delta"
    assistant_message_id: MessageId
    call_id: CallId
    delta: str


class ToolOutputDelta(Model):
    """Live output of a running call. Output that arrives too fast is left out."""

    type: Literal["tool.output.delta"] = "tool.output.delta"
    assistant_message_id: MessageId
    call_id: CallId
    delta: str


class CompactionDelta(Model):
    type: Literal["compaction.delta"] = "compaction.delta"
    message_id: MessageId
    text: str


Delta: TypeAlias = Annotated[
    TextDelta | ReasoningDelta | ToolInputDelta | ToolOutputDelta | CompactionDelta,
    Field(discriminator="type"),
]

DELTA: TypeAdapter[Delta] = TypeAdapter(Delta)
