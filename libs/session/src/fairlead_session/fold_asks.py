"""Folds what waits for people: permissions, questions, and the todo list."""

from dataclasses import replace
from typing import TypeAlias, assert_never

from fairlead_schema.events import (
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    TodoUpdated,
)
from fairlead_session.state import Session

AskEvent: TypeAlias = (
    PermissionAsked
    | PermissionReplied
    | QuestionAsked
    | QuestionReplied
    | QuestionRejected
    | TodoUpdated
)


def evolve(session: Session, event: AskEvent) -> Session:
    """Apply one event that people wait for or read."""
    match event:
        case PermissionAsked(request=asked):
            return replace(session, permissions={**session.permissions, asked.id: asked})
        case PermissionReplied(request_id=answered):
            rest = {key: ask for key, ask in session.permissions.items() if key != answered}
            return replace(session, permissions=rest)
        case QuestionAsked(request=question):
            return replace(session, questions={**session.questions, question.id: question})
        case QuestionReplied(request_id=done) | QuestionRejected(request_id=done):
            left = {key: ask for key, ask in session.questions.items() if key != done}
            return replace(session, questions=left)
        case TodoUpdated(todos=todos):
            return replace(session, todos=todos)
        case _:
            assert_never(event)
