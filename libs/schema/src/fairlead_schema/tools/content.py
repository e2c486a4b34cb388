"""Tool content and the state of one call inside an assistant message."""

import re
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from fairlead_schema.ids import OutputId
from fairlead_schema.model import Model
from fairlead_schema.prompt import PromptFile

RetryClass: TypeAlias = Literal["pure", "idempotent", "once"]
Json: TypeAlias = Any

MANAGED_PREFIX: Final = "fairlead-output:/"
"""The prefix of a managed output's path. Tools, clients and models read the output by this path."""

MANAGED_PATH: Final = re.compile(re.escape(MANAGED_PREFIX) + r"(out_[A-Za-z0-9_-]{1,120})")


def managed_path(output_id: OutputId) -> str:
    """The path of a managed output."""
    return MANAGED_PREFIX + output_id


def managed_id(path: str) -> OutputId | None:
    """The managed output that a path names, or None for any other path."""
    match = MANAGED_PATH.fullmatch(path)
    return match[1] if match else None


class TextContent(Model):
    """Text that a tool returned."""

    type: Literal["text"] = "text"
    text: str


class FileContent(Model):
    """Media that a tool returned, inline as a data URI or by reference."""

    type: Literal["file"] = "file"
    uri: str
    mime: str
    name: str | None = None


ToolContent: TypeAlias = Annotated[TextContent | FileContent, Field(discriminator="type")]


DECLINED: Final = "declined"
"""The code of a call that did not run because a person said no."""


class ErrorInfo(Model):
    """Why a step or a call failed, as text for the model and for people."""

    type: Literal["unknown"] = "unknown"
    message: str
    code: str | None = None
    """Why, as a word for programs: the kind of a provider's failure, or that a person declined a call."""
    outcome: Literal["unknown"] | None = None
    """`unknown`: nobody knows whether the call had its effect, or how far the provider's turn came."""


class Executor(Model):
    """Who executes a call: the provider itself, or Fairlead."""

    executed: bool = False
    metadata: dict[str, Any] | None = None


class CallExecutor(Executor):
    """The executor of a call, with the provider metadata of its result."""

    result_metadata: dict[str, Any] | None = None


class PendingCall(Model):
    """The input is still streaming, or the stream ended before the call."""

    status: Literal["pending"] = "pending"
    input: str = ""


class RunningCall(Model):
    """The model has made the call, and the call is not settled."""

    status: Literal["running"] = "running"
    input: dict[str, Any]
    structured: dict[str, Any] = Field(default_factory=dict)
    content: tuple[ToolContent, ...] = ()


class CompletedCall(Model):
    """The call is settled with a result."""

    status: Literal["completed"] = "completed"
    input: dict[str, Any]
    structured: dict[str, Any] = Field(default_factory=dict)
    content: tuple[ToolContent, ...] = ()
    attachments: tuple[PromptFile, ...] | None = None
    output_paths: tuple[str, ...] | None = None
    result: Json | None = None


class FailedCall(Model):
    """The call is settled with an error."""

    status: Literal["error"] = "error"
    input: dict[str, Any] = Field(default_factory=dict)
    structured: dict[str, Any] = Field(default_factory=dict)
    content: tuple[ToolContent, ...] = ()
    error: ErrorInfo
    result: Json | None = None


ToolState: TypeAlias = Annotated[
    PendingCall | RunningCall | CompletedCall | FailedCall, Field(discriminator="status")
]
