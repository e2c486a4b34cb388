"""Prompts as callers send them and as the log stores them, and the receipt of an admission."""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from fairlead_schema.attachments.reference import attachment_id
from fairlead_schema.catalog import ModelRef, Name
from fairlead_schema.commands.prompt_keys import OPTIONS, refuse_mistaken_keys
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.model import InputModel, Model

Delivery: TypeAlias = Literal["steer", "queue"]

TEXT_LENGTH_MAX = 512 * 1024
TOOLS_MAX = 256
EXPANSION_LEVEL: Final = 2
"""An older release would take the exact retry of an expanded prompt for another prompt."""
OPTIONS_LEVEL: Final = 2
"""A release that does not know the options of a prompt would answer it without them."""


class TextSpan(Model):
    """The span of the prompt text that mentions an attachment or an agent."""

    start: int
    end: int
    text: str


class FileInput(InputModel):
    """An attachment as the caller sends it."""

    uri: Annotated[str, StringConstraints(min_length=1)]
    name: str | None = None
    description: str | None = None
    source: TextSpan | None = None


class AgentMention(InputModel):
    """A mention of an agent in the prompt."""

    name: str
    source: TextSpan | None = None


class PromptOptions(Model):
    """What holds for one prompt alone: until the model has answered it.

    An absent option is the session's own. A selection of tools only narrows what the agent may use.
    """

    system: Annotated[str, StringConstraints(min_length=1, max_length=TEXT_LENGTH_MAX)] | None = (
        None
    )
    model: ModelRef | None = None
    agent: Name | None = None
    tools: Annotated[tuple[Name, ...], Field(max_length=TOOLS_MAX)] | None = None
    """Names or patterns of tools; `*` stands for any characters. An empty list means no tools."""
    output_schema: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    """The JSON Schema of the answer. The answer is then a JSON value that fits."""

    @property
    def has_options(self) -> bool:
        """Whether anything holds for this prompt alone."""
        return (
            self.system is not None
            or self.model is not None
            or self.agent is not None
            or self.tools is not None
            or self.output_schema is not None
        )


MentionKind: TypeAlias = Literal["command", "skill", "file", "agent", "reference"]


class SourceMention(Model):
    """A name in a prompt as it was typed: its span, and what it named."""

    kind: MentionKind
    name: str
    start: int
    end: int


class PromptSource(Model):
    """What the sender of an expanded prompt typed. The fingerprint recognises an exact retry of it."""

    text: str
    fingerprint: str
    mentions: tuple[SourceMention, ...] = ()


class PromptInput(InputModel, PromptOptions):
    """The prompt that a person or a service sends to a session."""

    text: Annotated[str, StringConstraints(max_length=TEXT_LENGTH_MAX)]
    files: tuple[FileInput, ...] | None = None
    agents: tuple[AgentMention, ...] | None = None
    expand: bool | None = None
    """False: commands and mentions in the text are not expanded before the admission."""
    synthetic: bool | None = None
    """Whether a program says the text, and no person."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_mistakes(cls, value: object) -> object:
        return refuse_mistaken_keys(value, _KEYS, inside=True)


_KEYS: Final = frozenset({"text", "files", "agents", "expand", "synthetic"}) | OPTIONS


class AttachedContent(Model):
    """What the model is shown of an attachment: taken once, and never again.

    It has a text, or media as a URI, or only a note that says why there is nothing to show.
    """

    mime: str
    bytes: int | None = None
    """The size of the media or of the text, if there is any."""
    text: str | None = None
    uri: str | None = None
    """Inline data, or the URI of a stored attachment."""
    note: str | None = None


class PromptFile(Model):
    """An attachment with its media type resolved."""

    uri: str
    mime: str
    name: str | None = None
    description: str | None = None
    source: TextSpan | None = None
    content: AttachedContent | None = None
    """Absent until the attachment is taken; inline and stored data needs none."""


class Prompt(PromptOptions):
    """A resolved prompt, as the model will see it."""

    text: str
    files: tuple[PromptFile, ...] | None = None
    agents: tuple[AgentMention, ...] | None = None
    synthetic: bool | None = None
    source: PromptSource | None = None
    """What the sender typed, if the prompt was expanded."""


def needs_level(prompt: Prompt) -> int:
    """The level of the log's format that a reader of this prompt must know (docs/adr/0029)."""
    taken = any(file.content or attachment_id(file.uri) for file in prompt.files or ())
    expanded = prompt.synthetic is not None or prompt.source is not None
    return OPTIONS_LEVEL if taken or expanded or prompt.has_options else 1


class Receipt(Model):
    """The answer of an admission. An exact retry gets the same receipt."""

    admitted_seq: int
    id: MessageId
    session_id: SessionId
    prompt: Prompt
    delivery: Delivery
    time_created: int
    promoted_seq: int | None = None
