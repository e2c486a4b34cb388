"""Who waits for people: calls whose permission or question nobody has answered yet."""

from typing import TypeAlias

from fairlead_schema.events import PermissionReplied, QuestionRejected
from fairlead_schema.ids import CallId, MessageId
from fairlead_session.fold.asks import AnswerEvent
from fairlead_session.state.asks import PendingPermission, PendingQuestion
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session

PendingAsk: TypeAlias = PendingPermission | PendingQuestion


def source_call(ask: PendingAsk) -> tuple[MessageId, CallId] | None:
    """The call that a request comes from; None for one that no call waits for."""
    comes_from = ask.request.source if isinstance(ask, PendingPermission) else ask.request.tool
    return None if comes_from is None else (comes_from.message_id, comes_from.call_id)


def pending_ask(session: Session, call: UnsettledCall) -> PendingAsk | None:
    """What a person must answer before the call begins; one that has begun waits for nobody."""
    if call.worker is not None:
        return None
    key = (call.assistant_message_id, call.call_id)
    asks: tuple[PendingAsk, ...] = (
        *session.asks.permissions.values(),
        *session.asks.questions.values(),
    )
    return next((ask for ask in asks if source_call(ask) == key), None)


def ready_calls(session: Session) -> tuple[UnsettledCall, ...]:
    """The calls that wait for nobody but a worker."""
    if not session.asks.permissions and not session.asks.questions:
        return session.calls
    return tuple(call for call in session.calls if pending_ask(session, call) is None)


def waits_for_people(session: Session) -> bool:
    """Whether nothing can happen before a person answers: every open call asks."""
    return bool(session.calls) and not ready_calls(session)


def close_asks(session: Session) -> tuple[AnswerEvent, ...]:
    """An answer to everything that waits, for a session that stops: no request is left behind."""
    asks: tuple[PendingAsk, ...] = (
        *session.asks.permissions.values(),
        *session.asks.questions.values(),
    )
    return tuple(refusal(one) for one in asks)


def withdraw_continue_question(session: Session) -> tuple[AnswerEvent, ...]:
    """Takes back the question whether to go on, once somebody says what to do otherwise."""
    open_ = (one for one in session.asks.questions.values() if source_call(one) is None)
    return tuple(refusal(one) for one in open_)


def describe_ask(ask: PendingAsk) -> str:
    """A request in words for people."""
    if isinstance(ask, PendingPermission):
        resources = ", ".join(ask.request.resources)
        named = f" ({resources})" if resources not in {"", "*"} else ""
        return f"permission to run {ask.request.action}{named}"
    return "an answer to a question"


def refusal(ask: PendingAsk) -> AnswerEvent:
    """The answer of nobody: it permits nothing."""
    if isinstance(ask, PendingPermission):
        return PermissionReplied(request_id=ask.request.id, reply="reject")
    return QuestionRejected(request_id=ask.request.id)
