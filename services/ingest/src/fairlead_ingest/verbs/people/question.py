"""The verbs of questions: reply, reject, list."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.people.answer_ask import answer_with
from fairlead_ingest.verbs.sessions import load, reached
from fairlead_schema.commands.asks import PendingQuestions, QuestionCommand, ReplyQuestion
from fairlead_schema.commands.session import ExecutionReached, SessionCommand
from fairlead_schema.errors import QuestionNotFound
from fairlead_schema.events import QuestionRejected, QuestionReplied, SessionEvent
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.people import asks
from fairlead_session.people.asks import AnswerDecision, AskNotPending
from fairlead_session.state.session import Session


async def reply(
    context: ContextDep, tenant: TenantParam, command: ReplyQuestion
) -> ExecutionReached:
    """The answers settle the call that asked, in one commit. Raises QuestionNotFound."""
    answer = QuestionReplied(request_id=command.request_id, answers=command.answers)

    def decide(session: Session) -> tuple[SessionEvent, ...]:
        return _found(asks.answer_question(session, answer), command.request_id)

    return reached(await answer_with(context, Address(tenant, command.session_id), decide))


async def reject(
    context: ContextDep, tenant: TenantParam, command: QuestionCommand
) -> ExecutionReached:
    """A dismissal stops the session, as a decline does. Raises QuestionNotFound."""
    rejected = QuestionRejected(request_id=command.request_id)

    def decide(session: Session) -> tuple[SessionEvent, ...]:
        return _found(asks.reject_question(session, rejected), command.request_id)

    return reached(await answer_with(context, Address(tenant, command.session_id), decide))


async def list_(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> PendingQuestions:
    """What waits in this session, in the order of asking, from the log."""
    session = await load(context, Address(tenant, command.session_id))
    return PendingQuestions(requests=tuple(one.request for one in session.asks.questions.values()))


def _found(decided: AnswerDecision, request_id: str) -> tuple[SessionEvent, ...]:
    if isinstance(decided, AskNotPending):
        raise QuestionNotFound(request_id)
    return decided
