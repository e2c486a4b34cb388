"""The entries of a transcript as the terminal shows them."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from fairlead_schema.ids import CallId, MessageId, SessionId
from fairlead_schema.prompt import Delivery

CallState: TypeAlias = Literal["writing", "running", "waiting", "done", "failed"]
"""`writing`: the model still writes the input. `waiting`: a person is asked."""
NoticeLevel: TypeAlias = Literal["info", "warning", "error"]


@dataclass(slots=True, kw_only=True)
class Entry:
    """One entry. Every change counts its revision up, so that a drawn form can be kept."""

    key: str
    message_id: MessageId
    revision: int = 0


@dataclass(slots=True, kw_only=True)
class PromptEntry(Entry):
    """A prompt that the model has seen."""

    text: str
    files: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class TextEntry(Entry):
    """A text of the model."""

    text: str = ""
    is_open: bool = True


@dataclass(slots=True, kw_only=True)
class ReasoningEntry(Entry):
    """What a model thinks before it speaks."""

    text: str = ""
    is_open: bool = True


@dataclass(slots=True, kw_only=True)
class CallEntry(Entry):
    """A tool call, or a person's own command."""

    call_id: CallId
    tool: str
    state: CallState = "writing"
    draft: str = ""
    """The beginning of the input while the model writes it, as JSON."""
    written: int = 0
    """How many characters of the input there are so far."""
    input: dict[str, Any] = field(default_factory=dict)
    output: str = ""
    error: str = ""
    structured: dict[str, Any] = field(default_factory=dict)
    began: int = 0
    ended: int = 0
    """When it began and ended, in epoch milliseconds."""
    child: SessionId | None = None
    """The session of a sub-agent that answers the call."""
    child_line: str = ""
    """What the sub-agent does now."""
    is_own: bool = False
    """Whether a person ran it."""


@dataclass(slots=True, kw_only=True)
class SummaryEntry(Entry):
    """A compaction: the summary that replaces the history before it."""

    text: str = ""
    is_open: bool = True


@dataclass(slots=True, kw_only=True)
class NoticeEntry(Entry):
    """One sentence about the session."""

    text: str
    level: NoticeLevel = "info"


AnyEntry: TypeAlias = (
    PromptEntry | TextEntry | ReasoningEntry | CallEntry | SummaryEntry | NoticeEntry
)


@dataclass(frozen=True, slots=True)
class WaitingPrompt:
    """An input that the model has not seen."""

    message_id: MessageId
    text: str
    delivery: Delivery
