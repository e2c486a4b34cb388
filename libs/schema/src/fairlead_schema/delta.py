"""Deltas: live fragments of an answer. They are broadcast once, never stored, never replayed.

The deltas of a block have numbers from 0 on (`index`). So a reader that came late can join the text so
far and the deltas after it. Deltas of earlier releases have none.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter

from fairlead_schema.ids import CallId, MessageId, SessionId, TenantId
from fairlead_schema.model import InputModel, Model


class TextDelta(Model):
    type: Literal["text.delta"] = "text.delta"
    assistant_message_id: MessageId
    text_id: str
    delta: str
    index: int | None = None


class ReasoningDelta(Model):
    type: Literal["reasoning.delta"] = "reasoning.delta"
    assistant_message_id: MessageId
    reasoning_id: str
    delta: str
    index: int | None = None


class ToolInputDelta(Model):
    type: Literal["tool.input.delta"] = "tool.input.delta"
    assistant_message_id: MessageId
    call_id: CallId
    delta: str
    index: int | None = None


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


NumberedDelta: TypeAlias = Annotated[
    TextDelta | ReasoningDelta | ToolInputDelta, Field(discriminator="type")
]
"""A delta of a block whose end is an event with the whole text."""

Delta: TypeAlias = Annotated[
    TextDelta | ReasoningDelta | ToolInputDelta | ToolOutputDelta | CompactionDelta,
    Field(discriminator="type"),
]

DELTA: TypeAdapter[Delta] = TypeAdapter(Delta, config=ConfigDict(defer_build=True))


class OpenText(Model):
    """One open block: its text as one delta, and how many deltas made it."""

    so_far: NumberedDelta
    deltas: int
    """The number of the delta that comes next."""


class OpenTexts(Model):
    """The open blocks of one session, in the order in which they began."""

    texts: tuple[OpenText, ...] = ()


class AskOpenTexts(InputModel):
    """The question for the open blocks of a session. Only its owner knows them."""

    tenant: TenantId
    session_id: SessionId
