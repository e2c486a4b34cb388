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
from fairlead_session.fold import Reducers
from fairlead_session.frozen import replace
from fairlead_session.state.asks import Asks, PendingPermission, PendingQuestion
from fairlead_session.state.session import Session

AnswerEvent: TypeAlias = PermissionReplied | QuestionReplied | QuestionRejected
Pending = TypeVar("Pending")

# A client may repeat any of the newest answers.
ANSWERS_MAX: Final = 100


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


def _ask_permission(session: Session, event: PermissionAsked, recorded: Recorded) -> Asks:
    asks = session.asks
    pending = PendingPermission(event.request, event.agent, recorded.time)
    return replace(asks, permissions={**asks.permissions, event.request.id: pending})


def _ask_question(session: Session, event: QuestionAsked, recorded: Recorded) -> Asks:
    asks = session.asks
    pending = PendingQuestion(event.request, recorded.time)
    return replace(asks, questions={**asks.questions, event.request.id: pending})


def _answer_permission(session: Session, event: PermissionReplied, recorded: Recorded) -> Asks:
    left = _without(session.asks.permissions, event.request_id)
    approved_by = session.asks.approved_by if event.reply == "reject" else recorded.by
    return _remember(replace(session.asks, permissions=left, approved_by=approved_by), event)


def _answer_question(
    session: Session, event: QuestionReplied | QuestionRejected, _recorded: Recorded
) -> Asks:
    left = _without(session.asks.questions, event.request_id)
    return _remember(replace(session.asks, questions=left), event)


REDUCERS: Final[Reducers[Asks]] = {
    PermissionAsked: _ask_permission,
    QuestionAsked: _ask_question,
    PermissionReplied: _answer_permission,
    QuestionReplied: _answer_question,
    QuestionRejected: _answer_question,
}
