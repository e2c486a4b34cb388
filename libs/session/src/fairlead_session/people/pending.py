"""Pending asks: permissions and questions that nobody has answered yet, and the calls behind them."""

from typing import TypeAlias

from fairlead_schema.events import PermissionReplied, QuestionRejected
from fairlead_schema.ids import CallId, MessageId
from fairlead_session.fold.asks import AnswerEvent
from fairlead_session.state.asks import PendingPermission, PendingQuestion
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session

PendingAsk: TypeAlias = PendingPermission | PendingQuestion


def source_call(ask: PendingAsk) -> tuple[MessageId, CallId] | None:
    """The call that waits for the answer. None if no call does."""
    source = ask.request.source if isinstance(ask, PendingPermission) else ask.request.tool
    return None if source is None else (source.message_id, source.call_id)


def pending_ask(session: Session, call: UnsettledCall) -> PendingAsk | None:
    """The ask that a person must answer before the call begins. A started call waits for nobody."""
    if call.worker is not None:
        return None
    key = (call.assistant_message_id, call.call_id)
    return next((ask for ask in _all_asks(session) if source_call(ask) == key), None)


def ready_calls(session: Session) -> tuple[UnsettledCall, ...]:
    """The open calls that wait for no person."""
    if not session.asks.permissions and not session.asks.questions:
        return session.calls
    return tuple(call for call in session.calls if pending_ask(session, call) is None)


def waits_for_people(session: Session) -> bool:
    """Whether only a person can move the session on: every open call waits for an answer."""
    return bool(session.calls) and not ready_calls(session)


def close_asks(session: Session) -> tuple[AnswerEvent, ...]:
    """Refuse every pending ask of a session that stops."""
    return tuple(refusal(ask) for ask in _all_asks(session))


def withdraw_continue_question(session: Session) -> tuple[AnswerEvent, ...]:
    """Refuse the question whether to continue after a crash: another command has decided."""
    questions = session.asks.questions.values()
    return tuple(refusal(ask) for ask in questions if source_call(ask) is None)


def describe_ask(ask: PendingAsk) -> str:
    """An ask in words for people."""
    if isinstance(ask, PendingPermission):
        resources = ", ".join(ask.request.resources)
        suffix = f" ({resources})" if resources not in {"", "*"} else ""
        return f"permission to run {ask.request.action}{suffix}"
    return "an answer to a question"


def refusal(ask: PendingAsk) -> AnswerEvent:
    """The answer that permits nothing."""
    if isinstance(ask, PendingPermission):
        return PermissionReplied(request_id=ask.request.id, reply="reject")
    return QuestionRejected(request_id=ask.request.id)


def _all_asks(session: Session) -> tuple[PendingAsk, ...]:
    return (*session.asks.permissions.values(), *session.asks.questions.values())
