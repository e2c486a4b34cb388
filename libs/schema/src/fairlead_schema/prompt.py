"""Prompts as callers send them and as the log stores them, and the receipt of an admission."""

from typing import Annotated, Literal, TypeAlias

from pydantic import StringConstraints

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


class PromptFile(Model):
    """An attachment with its media type resolved."""

    uri: str
    mime: str
    name: str | None = None
    description: str | None = None
    source: TextSpan | None = None


class Prompt(Model):
    """A resolved prompt, as the model will see it."""

    text: str
    files: tuple[PromptFile, ...] | None = None
    agents: tuple[AgentMention, ...] | None = None


class Receipt(Model):
    """The answer of an admission. An exact retry gets the same receipt."""

    admitted_seq: int
    id: MessageId
    session_id: SessionId
    prompt: Prompt
    delivery: Delivery
    time_created: int
    promoted_seq: int | None = None
