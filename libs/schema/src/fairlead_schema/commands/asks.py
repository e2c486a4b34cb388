"""Commands and answers about what waits for people: permissions, questions, saved approvals."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from fairlead_schema.api import AgentName
from fairlead_schema.commands.session import SessionCommand
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

Words = Annotated[str, StringConstraints(max_length=16_384)]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
AnyId = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class PermissionCommand(SessionCommand):
    """A command about one pending permission."""

    request_id: PermissionId


class PermissionBody(InputModel):
    """Asks for a permission from outside, as a tool that runs elsewhere does."""

    id: PermissionId | None = None
    action: Pattern
    resources: Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=256)]
    save: Annotated[tuple[Pattern, ...], Field(max_length=256)] | None = None
    metadata: dict[str, Any] | None = None
    source: Annotated[CallSource, NoNull] | None = None
    agent: AgentName | None = None


class AskPermission(PermissionBody, SessionCommand):
    """`permission.ask`: judge at once, and leave a request where a person decides."""


class PermissionJudged(Model):
    """What the rules say, under the id a request has or would have."""

    id: PermissionId
    effect: Effect


class ReplyBody(InputModel):
    """A person's word on a permission."""

    reply: Reply
    message: Words | None = None


class ReplyPermission(ReplyBody, PermissionCommand):
    """`permission.reply`: once, for always, or not at all."""


class AnswersBody(InputModel):
    """Labels, question by question; other words are answers too."""

    answers: Annotated[tuple[tuple[Words, ...], ...], Field(max_length=256)]


class QuestionCommand(SessionCommand):
    """`question.reject`: a person dismisses a question."""

    request_id: QuestionId


class ReplyQuestion(AnswersBody, QuestionCommand):
    """`question.reply`: the answers of a person."""


class ExpireAsk(SessionCommand):
    """`ask.expire`: settle a request that waited for too long."""

    request_id: AnyId


class ListApprovals(InputModel):
    """`approval.list`: what was approved for always in a project."""

    project_id: AnyId


class RemoveApproval(InputModel):
    """`approval.remove`: take one back."""

    id: AnyId


class Permissions(Model):
    """What waits for a person's permission."""

    requests: tuple[PermissionRequest, ...]


class Questions(Model):
    """What waits for a person's answer."""

    requests: tuple[QuestionRequest, ...]


class ApprovalsSaved(Model):
    """What was approved for always."""

    saved: tuple[SavedPermission, ...]


class Removed(Model):
    """It is not there, whether or not it was."""

    id: str
