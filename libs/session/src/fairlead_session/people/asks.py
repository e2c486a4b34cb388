"""Asks: the permissions and questions that a session puts to people, and what an answer writes.

An ask is a fact, not a wait (docs/adr/0014). Each answer is one commit, decided here from the log.
"""

from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, TypeAlias

from fairlead_schema.events import (
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    ResumeRequested,
    SessionEvent,
)
from fairlead_schema.ids import PermissionId, QuestionId, SessionId
from fairlead_schema.permission import (
    CallSource,
    PermissionRequest,
    PermissionRule,
    QuestionInfo,
    QuestionRequest,
    ToolSource,
)
from fairlead_schema.tools.content import TextContent
from fairlead_session.calls.lifecycle import Failed, Succeeded, failure_event, settle
from fairlead_session.execution.recovery import CONTINUE
from fairlead_session.fold.asks import AnswerEvent, answer_text
from fairlead_session.fold.calls import find_call
from fairlead_session.people.pending import (
    PendingAsk,
    close_asks,
    describe_ask,
    refusal,
    source_call,
)
from fairlead_session.people.permission import AgentRules, Need, judge
from fairlead_session.state.asks import PendingPermission
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session

UNANSWERED: Final = "Unanswered"


@dataclass(frozen=True, slots=True)
class AskNotPending:
    """The ask does not wait: it has another answer, or it never existed."""


@dataclass(frozen=True, slots=True)
class PermissionIdInUse:
    """The id belongs to another permission request of the session."""

    request_id: PermissionId


AnswerDecision: TypeAlias = tuple[SessionEvent, ...] | AskNotPending
"""The events of an answer. An answer that was given before writes nothing."""


def permission_for_call(
    session_id: SessionId, call: UnsettledCall, need: Need, id_: PermissionId
) -> PermissionAsked:
    """The permission request for one need of a call."""
    request = PermissionRequest(
        id=id_,
        session_id=session_id,
        action=need.action,
        resources=need.resources,
        save=need.save or None,
        metadata=dict(need.metadata) if need.metadata else None,
        source=CallSource(message_id=call.assistant_message_id, call_id=call.call_id),
    )
    return PermissionAsked(request=request, agent=call.agent)


def question_for_call(
    session_id: SessionId, call: UnsettledCall, questions: tuple[QuestionInfo, ...], id_: QuestionId
) -> QuestionAsked:
    """The questions of a call. The answers are the result of the call."""
    tool = ToolSource(message_id=call.assistant_message_id, call_id=call.call_id)
    request = QuestionRequest(id=id_, session_id=session_id, questions=questions, tool=tool)
    return QuestionAsked(request=request)


def ask_permission(
    session: Session, asked: PermissionAsked
) -> tuple[SessionEvent, ...] | PermissionIdInUse:
    """Ask a person for a permission. The same request again writes nothing."""
    id_ = asked.request.id
    pending = session.asks.permissions.get(id_)
    if pending is not None and pending.request == asked.request:
        return ()
    if pending is not None or id_ in session.asks.answers:
        return PermissionIdInUse(id_)
    return (asked,)


def reply_permission(
    session: Session,
    replied: PermissionReplied,
    rules: AgentRules,
    saved: tuple[PermissionRule, ...],
) -> AnswerDecision:
    """Answer a permission request. `saved` holds the project's approvals, with this one.

    A rejection with a message fails only its call, and the model reads the message. A rejection
    without a message stops the session. An approval for always answers other requests here that
    it allows.
    """
    pending = session.asks.permissions.get(replied.request_id)
    if pending is None:
        return _repeat_answer(session, replied)
    if replied.reply == "reject" and replied.message:
        return (replied, *_fail_call(session, pending, replied.message))
    if replied.reply == "reject":
        return decline(session, pending, replied)
    if replied.reply == "once":
        return (replied,)
    others = (
        event
        for id_ in session.asks.permissions
        if id_ != replied.request_id
        for event in recheck_permission(session, id_, rules, saved)
    )
    return (replied, *others)


def approval_to_save(session: Session, replied: PermissionReplied) -> PermissionRequest | None:
    """The request whose patterns an approval for always saves for the project, if any."""
    pending = session.asks.permissions.get(replied.request_id)
    if pending is None or replied.reply != "always" or not pending.request.save:
        return None
    return pending.request


def recheck_permission(
    session: Session, id_: PermissionId, rules: AgentRules, saved: tuple[PermissionRule, ...]
) -> tuple[SessionEvent, ...]:
    """Answer a pending request, if saved approvals allow it now."""
    pending = session.asks.permissions.get(id_)
    if pending is None or session.execution.imported_through is not None:
        return ()
    need = Need(pending.request.action, pending.request.resources)
    allowed = judge(rules(pending.agent), saved, need) == "allow"
    return (PermissionReplied(request_id=id_, reply="always"),) if allowed else ()


def answer_question(session: Session, replied: QuestionReplied) -> AnswerDecision:
    """Answer questions. The answers settle the call that asked."""
    pending = session.asks.questions.get(replied.request_id)
    if pending is None:
        return _repeat_answer(session, replied)
    key = source_call(pending)
    if key is None:
        return (replied, ResumeRequested()) if _says_continue(replied) else (replied,)
    call = find_call(session, *key)
    if call is None:
        return (replied,)
    outcome = question_outcome(pending.request.questions, replied.answers)
    return (replied, *settle(session, call, outcome))


def question_outcome(
    questions: tuple[QuestionInfo, ...], answers: tuple[tuple[str, ...], ...]
) -> Succeeded:
    """The result of a call that asked questions: each question with the chosen labels."""
    pairs = zip_longest(questions, answers[: len(questions)], fillvalue=())
    lines = (
        f"{question.question} → {', '.join(labels) or UNANSWERED}"
        for question, labels in pairs
        if isinstance(question, QuestionInfo)
    )
    structured = {"answers": [list(labels) for labels in answers]}
    return Succeeded(structured=structured, content=(TextContent(text="\n".join(lines)),))


def reject_question(session: Session, rejected: QuestionRejected) -> AnswerDecision:
    """Dismiss questions. This stops the session, as a decline does, and no model reads it."""
    pending = session.asks.questions.get(rejected.request_id)
    if pending is None:
        return _repeat_answer(session, rejected)
    return decline(session, pending, rejected)


def decline(
    session: Session, pending: PendingAsk, event: AnswerEvent, why: str = "declined"
) -> tuple[SessionEvent, ...]:
    """Refuse an ask, stop the session, and close every other ask there.

    An ask without a call stops nothing.
    """
    if source_call(pending) is None:
        return (event,)
    others = tuple(
        refused for refused in close_asks(session) if refused.request_id != event.request_id
    )
    return (event, *others, InterruptRequested(declined=f"{describe_ask(pending)} was {why}"))


def expire_ask(session: Session, id_: str, *, before: int) -> tuple[SessionEvent, ...]:
    """Decline an ask from before a time that nobody answered."""
    pending = session.asks.permissions.get(id_) or session.asks.questions.get(id_)
    if pending is None or pending.asked >= before:
        return ()
    if session.execution.imported_through is not None:
        return ()  # Nobody here has asked for anything yet.
    return decline(session, pending, refusal(pending), "not answered in time")


def _fail_call(
    session: Session, pending: PendingPermission, message: str
) -> tuple[SessionEvent, ...]:
    key = source_call(pending)
    call = None if key is None else find_call(session, *key)
    if call is None:
        return ()
    text = f"Permission refused: {pending.request.action}. The user says: {message}"
    return (failure_event(call, Failed(text)),)


def _repeat_answer(session: Session, event: AnswerEvent) -> AnswerDecision:
    """A client that lost the reply to its answer repeats the answer. This changes nothing."""
    repeated = session.asks.answers.get(event.request_id) == answer_text(event)
    return () if repeated else AskNotPending()


def _says_continue(replied: QuestionReplied) -> bool:
    first = replied.answers[0] if replied.answers else ()
    return tuple(label.casefold() for label in first) == (CONTINUE.casefold(),)
