"""Folds permissions and questions that wait for people, and the answers to them."""

from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar, assert_never

from pydantic_core import to_json

from fairlead_schema.events import (
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
)
from fairlead_schema.record import Recorded
from fairlead_session.frozen import replace
from fairlead_session.state.asks import Asks, PendingPermission, PendingQuestion
from fairlead_session.state.session import Session

AnswerEvent: TypeAlias = PermissionReplied | QuestionReplied | QuestionRejected
AskEvent: TypeAlias = PermissionAsked | QuestionAsked | AnswerEvent

Pending = TypeVar("Pending")

# A client may repeat any of the newest answers.
ANSWERS_MAX: Final = 100


def evolve(session: Session, event: AskEvent, recorded: Recorded) -> Asks:
    """Apply one event of permissions and questions."""
    asks, at = session.asks, recorded.time
    match event:
        case PermissionAsked(request=permission):
            pending = PendingPermission(permission, event.agent, at)
            return replace(asks, permissions={**asks.permissions, permission.id: pending})
        case QuestionAsked(request=question):
            waiting = PendingQuestion(question, at)
            return replace(asks, questions={**asks.questions, question.id: waiting})
        case PermissionReplied(request_id=request_id):
            left = _without(asks.permissions, request_id)
            return _remember(replace(asks, permissions=left), event)
        case QuestionReplied(request_id=request_id) | QuestionRejected(request_id=request_id):
            open_ = _without(asks.questions, request_id)
            return _remember(replace(asks, questions=open_), event)
        case _:
            assert_never(event)


def answer_text(event: AnswerEvent) -> str:
    """A short form of an answer. Equal answers have equal short forms."""
    match event:
        case PermissionReplied(reply=reply, message=message):
            return f"{reply} {message or ''}".strip()
        case QuestionReplied(answers=answers):
            return to_json(answers).decode()
        case QuestionRejected():
            return "rejected"
        case _:
            assert_never(event)


def _without(pending: Mapping[str, Pending], request_id: str) -> dict[str, Pending]:
    return {key: ask for key, ask in pending.items() if key != request_id}


def _remember(asks: Asks, event: AnswerEvent) -> Asks:
    answers = {**asks.answers, event.request_id: answer_text(event)}
    return replace(asks, answers=dict(list(answers.items())[-ANSWERS_MAX:]))
