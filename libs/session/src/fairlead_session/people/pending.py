"""Who waits for people: calls whose permission or question nobody has answered yet."""

from typing import TypeAlias

from fairlead_schema.events import PermissionReplied, QuestionRejected
from fairlead_schema.ids import CallId, MessageId
from fairlead_session.fold.asks import AnswerEvent
from fairlead_session.state.asks import PendingPermission, PendingQuestion
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session

Pending: TypeAlias = PendingPermission | PendingQuestion


def source(pending: Pending) -> tuple[MessageId, CallId] | None:
    """The call that a request comes from; None for one that no call waits for."""
    comes_from = (
        pending.request.source if isinstance(pending, PendingPermission) else pending.request.tool
    )
    return None if comes_from is None else (comes_from.message_id, comes_from.call_id)


def pending(session: Session, call: UnsettledCall) -> Pending | None:
    """What a person must answer before the call begins; one that has begun waits for nobody."""
    if call.worker is not None:
        return None
    key = (call.assistant_message_id, call.call_id)
    asks: tuple[Pending, ...] = (
        *session.asks.permissions.values(),
        *session.asks.questions.values(),
    )
    return next((ask for ask in asks if source(ask) == key), None)


def ready(session: Session) -> tuple[UnsettledCall, ...]:
    """The calls that wait for nobody but a worker."""
    if not session.asks.permissions and not session.asks.questions:
        return session.calls
    return tuple(call for call in session.calls if pending(session, call) is None)


def waits_for_people(session: Session) -> bool:
    """Whether nothing can happen before a person answers: every open call asks."""
    return bool(session.calls) and not ready(session)


def close(session: Session) -> tuple[AnswerEvent, ...]:
    """An answer to everything that waits, for a session that stops: no request is left behind."""
    asks: tuple[Pending, ...] = (
        *session.asks.permissions.values(),
        *session.asks.questions.values(),
    )
    return tuple(refusal(one) for one in asks)


def withdraw(session: Session) -> tuple[AnswerEvent, ...]:
    """Takes back the question whether to go on, once somebody says what to do otherwise."""
    open_ = (one for one in session.asks.questions.values() if source(one) is None)
    return tuple(refusal(one) for one in open_)


def what(pending: Pending) -> str:
    """A request in words for people."""
    if isinstance(pending, PendingPermission):
        resources = ", ".join(pending.request.resources)
        named = f" ({resources})" if resources not in {"", "*"} else ""
        return f"permission to run {pending.request.action}{named}"
    return "an answer to a question"


def refusal(pending: Pending) -> AnswerEvent:
    """The answer of nobody: it permits nothing."""
    if isinstance(pending, PendingPermission):
        return PermissionReplied(request_id=pending.request.id, reply="reject")
    return QuestionRejected(request_id=pending.request.id)
