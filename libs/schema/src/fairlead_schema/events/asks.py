"""Events for people: permission requests, questions and their answers, and the todo list."""

from typing import ClassVar, Literal

from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import PermissionId, QuestionId
from fairlead_schema.model import Model
from fairlead_schema.permission import PermissionRequest, QuestionRequest, Reply


class PermissionAsked(Event):
    type: ClassVar[str] = "permission.asked"
    visibility: ClassVar[Visibility] = "notice"
    request: PermissionRequest
    agent: str


class PermissionReplied(Event):
    type: ClassVar[str] = "permission.replied"
    visibility: ClassVar[Visibility] = "notice"
    request_id: PermissionId
    reply: Reply
    message: str | None = None


class QuestionAsked(Event):
    type: ClassVar[str] = "question.asked"
    visibility: ClassVar[Visibility] = "notice"
    request: QuestionRequest


class QuestionReplied(Event):
    type: ClassVar[str] = "question.replied"
    visibility: ClassVar[Visibility] = "notice"
    request_id: QuestionId
    answers: tuple[tuple[str, ...], ...]


class QuestionRejected(Event):
    type: ClassVar[str] = "question.rejected"
    visibility: ClassVar[Visibility] = "notice"
    request_id: QuestionId


class Todo(Model):
    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    priority: Literal["high", "medium", "low"]


class TodoUpdated(Event):
    type: ClassVar[str] = "todo.updated"
    visibility: ClassVar[Visibility] = "notice"
    todos: tuple[Todo, ...]
