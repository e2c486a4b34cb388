"""Asking people: what a call must be permitted, the question it becomes, and what an answer does.

An ask is a fact, not a wait (docs/adr/0014): each answer is one commit, decided here from the log.
"""

from collections.abc import Callable, Iterable
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
    SavedPermission,
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
from fairlead_session.people.permission import Need, effect, judge, matches
from fairlead_session.state.asks import PendingPermission
from fairlead_session.state.calls import Grant, UnsettledCall
from fairlead_session.state.session import Session

UNANSWERED: Final = "Unanswered"

AgentRules: TypeAlias = Callable[[str], tuple[PermissionRule, ...]]
"""The rules of an agent, by its name."""


@dataclass(frozen=True, slots=True)
class Denied:
    """A rule forbids it, whoever would permit it. The words are for the model."""

    message: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A person decides about this first."""

    need: Need


@dataclass(frozen=True, slots=True)
class AskNotPending:
    """No such request waits here: it never did, or it was answered otherwise."""


AnswerDecision: TypeAlias = tuple[SessionEvent, ...] | AskNotPending
"""What an answer writes; nothing when the very same answer was given before."""


def permit(
    rules: tuple[PermissionRule, ...],
    saved: tuple[PermissionRule, ...],
    grants: tuple[Grant, ...],
    needs: tuple[Need, ...],
) -> Denied | Ask | None:
    """Whether a call with these needs may run: None, or what stands in its way.

    Denials first, over all needs: nobody is asked about a call that cannot run anyway.
    """
    for need in needs:
        if judge(rules, (), need) == "deny":
            return Denied(f"Permission denied: {need.action} (rule: {_denying(rules, need)})")
    for need in needs:
        if judge(rules, saved, need) == "ask" and not _granted(grants, need):
            return Ask(need)
    return None


def approval_rules(saved: Iterable[SavedPermission]) -> tuple[PermissionRule, ...]:
    """Saved approvals as rules: they stand after all others."""
    return tuple(
        PermissionRule(action=one.action, resource=one.resource, effect="allow") for one in saved
    )


def ask_permission(
    session_id: SessionId, call: UnsettledCall, need: Need, id_: PermissionId
) -> PermissionAsked:
    """The request that one need of a call becomes."""
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


def ask_question(
    session_id: SessionId, call: UnsettledCall, questions: tuple[QuestionInfo, ...], id_: QuestionId
) -> QuestionAsked:
    """The questions of a call whose answer is its result."""
    tool = ToolSource(message_id=call.assistant_message_id, call_id=call.call_id)
    request = QuestionRequest(id=id_, session_id=session_id, questions=questions, tool=tool)
    return QuestionAsked(request=request)


def reply_permission(
    session: Session,
    answer: PermissionReplied,
    rules: AgentRules,
    saved: tuple[PermissionRule, ...],
) -> AnswerDecision:
    """What a reply to a permission writes. `saved` are the project's approvals, this one's too.

    A refusal with words fails that call alone, and the words reach the model. One without stops
    the session. An approval for always also answers what else waits here and is allowed by now.
    """
    pending = session.asks.permissions.get(answer.request_id)
    if pending is None:
        return _repeated(session, answer)
    if answer.reply == "reject" and answer.message:
        return (answer, *_refused(session, pending, answer.message))
    if answer.reply == "reject":
        return decline(session, pending, answer)
    if answer.reply == "once":
        return (answer,)
    others = (
        event
        for id_ in session.asks.permissions
        if id_ != answer.request_id
        for event in recheck_permission(session, id_, rules, saved)
    )
    return (answer, *others)


def recheck_permission(
    session: Session, id_: PermissionId, rules: AgentRules, saved: tuple[PermissionRule, ...]
) -> tuple[SessionEvent, ...]:
    """The answer to a pending request that saved approvals allow by now; nothing otherwise."""
    pending = session.asks.permissions.get(id_)
    if pending is None:
        return ()
    need = Need(pending.request.action, pending.request.resources)
    allowed = judge(rules(pending.agent), saved, need) == "allow"
    return (PermissionReplied(request_id=id_, reply="always"),) if allowed else ()


def answer_question(session: Session, replied: QuestionReplied) -> AnswerDecision:
    """What answers write: they are the result of the call that asked, and settle it."""
    pending = session.asks.questions.get(replied.request_id)
    if pending is None:
        return _repeated(session, replied)
    key = source_call(pending)
    if key is None:
        return (replied, ResumeRequested()) if _continues(replied) else (replied,)
    call = find_call(session, *key)
    if call is None:
        return (replied,)
    outcome = question_outcome(pending.request.questions, replied.answers)
    return (replied, *settle(session, call, outcome))


def question_outcome(
    questions: tuple[QuestionInfo, ...], answers: tuple[tuple[str, ...], ...]
) -> Succeeded:
    """Answers as the result of a call: each question with the labels that were chosen."""
    paired = zip_longest(questions, answers[: len(questions)], fillvalue=())
    lines = (
        f"{asked.question} → {', '.join(labels) or UNANSWERED}"
        for asked, labels in paired
        if isinstance(asked, QuestionInfo)
    )
    structured = {"answers": [list(labels) for labels in answers]}
    return Succeeded(structured=structured, content=(TextContent(text="\n".join(lines)),))


def reject_question(session: Session, rejected: QuestionRejected) -> AnswerDecision:
    """What a dismissal writes: like a decline it stops the session, and no model reads it."""
    pending = session.asks.questions.get(rejected.request_id)
    if pending is None:
        return _repeated(session, rejected)
    return decline(session, pending, rejected)


def decline(
    session: Session, pending: PendingAsk, event: AnswerEvent, why: str = "declined"
) -> tuple[SessionEvent, ...]:
    """A refusal that stops the session, and is the answer to everything else that waits there.

    A request that no call waits for stops nothing.
    """
    if source_call(pending) is None:
        return (event,)
    others = tuple(one for one in close_asks(session) if one.request_id != event.request_id)
    return (event, *others, InterruptRequested(declined=f"{describe_ask(pending)} was {why}"))


def expire_ask(session: Session, id_: str, *, before: int) -> tuple[SessionEvent, ...]:
    """What becomes of a request that was asked before a time and that nobody answered."""
    pending = session.asks.permissions.get(id_) or session.asks.questions.get(id_)
    if pending is None or pending.asked >= before:
        return ()
    return decline(session, pending, refusal(pending), "not answered in time")


def _refused(
    session: Session, pending: PendingPermission, message: str
) -> tuple[SessionEvent, ...]:
    key = source_call(pending)
    call = None if key is None else find_call(session, *key)
    if call is None:
        return ()
    words = f"Permission refused: {pending.request.action}. The user says: {message}"
    return (failure_event(call, Failed(words)),)


def _repeated(session: Session, event: AnswerEvent) -> AnswerDecision:
    """A client may lose the answer to its reply and say it again: that changes nothing."""
    same = session.asks.answers.get(event.request_id) == answer_text(event)
    return () if same else AskNotPending()


def _granted(grants: tuple[Grant, ...], need: Need) -> bool:
    return any(
        grant.action == need.action and set(need.resources) <= set(grant.resources)
        for grant in grants
    )


def _denying(rules: tuple[PermissionRule, ...], need: Need) -> str:
    """The last rule about a resource that is denied."""
    resource = next(one for one in need.resources if effect(rules, need.action, one) == "deny")
    fitting = (
        rule
        for rule in reversed(rules)
        if matches(rule.action, need.action) and matches(rule.resource, resource)
    )
    last = next(fitting)
    return f"{last.action} {last.resource} {last.effect}"


def _continues(replied: QuestionReplied) -> bool:
    first = replied.answers[0] if replied.answers else ()
    return tuple(label.casefold() for label in first) == (CONTINUE.casefold(),)
