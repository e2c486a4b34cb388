"""Commands about permissions, questions and saved approvals, and their answers."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from fairlead_schema.commands.session import AgentName, SessionCommand
from fairlead_schema.ids import PermissionId, QuestionId
from fairlead_schema.model import InputModel, Model, NoNull
from fairlead_schema.permission import (
    CallSource,
    Effect,
    PermissionRequest,
    QuestionRequest,
    Reply,
    SavedPermission,
)

ReplyText = Annotated[str, StringConstraints(max_length=16_384)]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
AnyId = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class PermissionCommand(SessionCommand):
    """A command about one pending permission request."""

    request_id: PermissionId


class PermissionBody(InputModel):
    """Asks for a permission, for a tool that runs outside Fairlead."""

    id: PermissionId | None = None
    action: Pattern
    resources: Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=256)]
    save: Annotated[tuple[Pattern, ...], Field(max_length=256)] | None = None
    metadata: dict[str, Any] | None = None
    source: Annotated[CallSource, NoNull] | None = None
    agent: AgentName | None = None


class AskPermission(PermissionBody, SessionCommand):
    """`permission.ask`: apply the rules, and record a request if a person must decide."""


class PermissionDecision(Model):
    """The effect of the rules, and the id of the request."""

    id: PermissionId
    effect: Effect


class ReplyBody(InputModel):
    """A person's reply to a permission request."""

    reply: Reply
    message: ReplyText | None = None


class ReplyPermission(ReplyBody, PermissionCommand):
    """`permission.reply`: allow once, allow always, or reject."""


class AnswersBody(InputModel):
    """The answers to each question: labels of its options, or free text."""

    answers: Annotated[tuple[tuple[ReplyText, ...], ...], Field(max_length=256)]


class QuestionCommand(SessionCommand):
    """`question.reject`: dismiss a question. Also the base of other commands about a question."""

    request_id: QuestionId


class ReplyQuestion(AnswersBody, QuestionCommand):
    """`question.reply`: answer a question."""


class ExpireAsk(SessionCommand):
    """`ask.expire`: settle a request that has waited too long."""

    request_id: AnyId


class ListApprovals(InputModel):
    """`approval.list`: list the saved approvals of a project."""

    project_id: AnyId


class RemoveApproval(InputModel):
    """`approval.remove`: remove one saved approval."""

    id: AnyId


class PendingPermissions(Model):
    """The permission requests that wait for a person."""

    requests: tuple[PermissionRequest, ...]


class PendingQuestions(Model):
    """The questions that wait for a person."""

    requests: tuple[QuestionRequest, ...]


class SavedApprovals(Model):
    """The saved approvals of a project."""

    saved: tuple[SavedPermission, ...]


class ApprovalRemoved(Model):
    """The approval is not there any more. The answer is the same if it never was."""

    id: str
