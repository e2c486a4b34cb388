"""Permission rules, pending requests, replies and saved approvals; questions to people."""

from typing import Any, Literal, TypeAlias

from fairlead_schema.ids import CallId, MessageId, PermissionId, QuestionId, SessionId
from fairlead_schema.model import Model

Effect: TypeAlias = Literal["allow", "deny", "ask"]
Reply: TypeAlias = Literal["once", "always", "reject"]


class PermissionRule(Model):
    """The effect for an action on a resource. The last matching rule wins."""

    action: str
    resource: str
    effect: Effect


class CallSource(Model):
    """The tool call that needs the permission."""

    type: Literal["tool"] = "tool"
    message_id: MessageId
    call_id: CallId


class PermissionRequest(Model):
    """A pending question to a person: may this action touch these resources?"""

    id: PermissionId
    session_id: SessionId
    action: str
    resources: tuple[str, ...]
    save: tuple[str, ...] | None = None
    metadata: dict[str, Any] | None = None
    source: CallSource | None = None


class SavedPermission(Model):
    """An approval that is valid for a project until somebody removes it."""

    id: str
    project_id: str
    action: str
    resource: str


class QuestionOption(Model):
    """One answer that a person may choose."""

    label: str
    description: str


class QuestionInfo(Model):
    """One question with its options."""

    question: str
    header: str
    options: tuple[QuestionOption, ...]
    multiple: bool | None = None
    custom: bool | None = None


class ToolSource(Model):
    """The tool call that asked a question."""

    message_id: MessageId
    call_id: CallId


class QuestionRequest(Model):
    """Questions that wait for a person."""

    id: QuestionId
    session_id: SessionId
    questions: tuple[QuestionInfo, ...]
    tool: ToolSource | None = None
