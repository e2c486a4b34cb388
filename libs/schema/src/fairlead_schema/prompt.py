"""Prompts as callers send them, as the log keeps them, and the receipt of an admission."""

from typing import Annotated, Literal, TypeAlias

from pydantic import StringConstraints

from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.model import InputModel, Model

Delivery: TypeAlias = Literal["steer", "queue"]

TEXT_LENGTH_MAX = 512 * 1024


class Source(Model):
    """The span of prompt text an attachment was mentioned in."""

    start: int
    end: int
    text: str


class FileInput(InputModel):
    """An attachment as the caller names it."""

    uri: Annotated[str, StringConstraints(min_length=1)]
    name: str | None = None
    description: str | None = None
    source: Source | None = None


class AgentMention(InputModel):
    """An agent named in the prompt."""

    name: str
    source: Source | None = None


class PromptInput(InputModel):
    """What a person or service says to a session."""

    text: Annotated[str, StringConstraints(max_length=TEXT_LENGTH_MAX)]
    files: tuple[FileInput, ...] | None = None
    agents: tuple[AgentMention, ...] | None = None


class PromptFile(Model):
    """An attachment with its media type resolved."""

    uri: str
    mime: str
    name: str | None = None
    description: str | None = None
    source: Source | None = None


class Prompt(Model):
    """A resolved prompt: what the model will see."""

    text: str
    files: tuple[PromptFile, ...] | None = None
    agents: tuple[AgentMention, ...] | None = None


class Receipt(Model):
    """What admission returns, and returns again for an exact retry."""

    admitted_seq: int
    id: MessageId
    session_id: SessionId
    prompt: Prompt
    delivery: Delivery
    time_created: int
    promoted_seq: int | None = None
