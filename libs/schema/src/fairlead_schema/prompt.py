"""Prompts as callers send them and as the log stores them, and the receipt of an admission."""

from typing import Annotated, Literal, TypeAlias

from pydantic import StringConstraints

from fairlead_schema.attachments.reference import attachment_id
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.model import InputModel, Model

Delivery: TypeAlias = Literal["steer", "queue"]

TEXT_LENGTH_MAX = 512 * 1024


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


class PromptInput(InputModel):
    """The prompt that a person or a service sends to a session."""

    text: Annotated[str, StringConstraints(max_length=TEXT_LENGTH_MAX)]
    files: tuple[FileInput, ...] | None = None
    agents: tuple[AgentMention, ...] | None = None


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


class Prompt(Model):
    """A resolved prompt, as the model will see it."""

    text: str
    files: tuple[PromptFile, ...] | None = None
    agents: tuple[AgentMention, ...] | None = None


def needs_level(prompt: Prompt) -> int:
    """The level of the log's format that a reader of this prompt must know (docs/adr/0029)."""
    files = prompt.files or ()
    return 2 if any(file.content or attachment_id(file.uri) for file in files) else 1


class Receipt(Model):
    """The answer of an admission. An exact retry gets the same receipt."""

    admitted_seq: int
    id: MessageId
    session_id: SessionId
    prompt: Prompt
    delivery: Delivery
    time_created: int
    promoted_seq: int | None = None
