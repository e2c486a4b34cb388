"""Folds what waits for people: permissions, questions, and the todo list."""

from collections.abc import Mapping
from typing import Final, TypeAlias, assert_never

from pydantic_core import to_json

from fairlead_schema.events import (
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    TodoUpdated,
)
from fairlead_session.frozen import replace
from fairlead_session.state import (
    Grant,
    PendingPermission,
    PendingQuestion,
    Session,
    UnsettledCall,
)

AskEvent: TypeAlias = (
    PermissionAsked
    | PermissionReplied
    | QuestionAsked
    | QuestionReplied
    | QuestionRejected
    | TodoUpdated
)
AnswerEvent: TypeAlias = PermissionReplied | QuestionReplied | QuestionRejected

# How many answers are remembered, so that a client may repeat one.
ANSWERS_MAX: Final = 100


def evolve(session: Session, event: AskEvent, at: int) -> Session:
    """Apply one event that people wait for or read."""
    match event:
        case PermissionAsked(request=asked):
            pending = PendingPermission(asked, event.agent, at)
            return replace(session, permissions={**session.permissions, asked.id: pending})
        case PermissionReplied():
            return _replied(session, event)
        case QuestionAsked(request=question):
            waits = PendingQuestion(question, at)
            return replace(session, questions={**session.questions, question.id: waits})
        case QuestionReplied(request_id=done) | QuestionRejected(request_id=done):
            left = {key: ask for key, ask in session.questions.items() if key != done}
            return _remembered(replace(session, questions=left), event)
        case TodoUpdated(todos=todos):
            return replace(session, todos=todos)
        case _:
            assert_never(event)


def told(event: AnswerEvent) -> str:
    """An answer in short: the same for the same answer."""
    match event:
        case PermissionReplied(reply=reply, message=message):
            return f"{reply} {message or ''}".strip()
        case QuestionReplied(answers=answers):
            return to_json(answers).decode()
        case QuestionRejected():
            return "rejected"
        case _:
            assert_never(event)


def _replied(session: Session, event: PermissionReplied) -> Session:
    """An approval is the call's own from here on, and stirs a session that is parked on it."""
    pending = session.permissions.get(event.request_id)
    rest = {key: ask for key, ask in session.permissions.items() if key != event.request_id}
    answered = _remembered(replace(session, permissions=rest), event)
    if pending is None or event.reply == "reject":
        return answered
    calls = tuple(_granted(call, pending) for call in session.calls)
    stirs = calls != session.calls and not session.interrupted
    return replace(answered, calls=calls, stirring=session.stirring or stirs)


def _granted(call: UnsettledCall, pending: PendingPermission) -> UnsettledCall:
    source = pending.request.source
    if source is None or (source.message_id, source.call_id) != (
        call.assistant_message_id,
        call.call_id,
    ):
        return call
    grant = Grant(pending.request.action, pending.request.resources)
    return replace(call, grants=(*call.grants, grant))


def _remembered(session: Session, event: AnswerEvent) -> Session:
    answers: Mapping[str, str] = {**session.answered, event.request_id: told(event)}
    newest = list(answers.items())[-ANSWERS_MAX:]
    return replace(session, answered=dict(newest))
