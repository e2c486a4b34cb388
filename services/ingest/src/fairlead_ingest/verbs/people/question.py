"""The verbs of questions: reply, reject, list."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.people.answer_ask import answer_ask
from fairlead_ingest.verbs.sessions import load
from fairlead_schema.commands.asks import PendingQuestions, QuestionCommand, ReplyQuestion
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.errors import QuestionNotFound
from fairlead_schema.events import QuestionRejected, QuestionReplied
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.people.asks import AskNotPending, answer_question, reject_question


async def reply(context: ContextDep, tenant: TenantParam, command: ReplyQuestion) -> SeqReached:
    """Write the answers, which settle the call that asked. Raises QuestionNotFound."""
    replied = QuestionReplied(request_id=command.request_id, answers=command.answers)
    answer = await answer_ask(
        context,
        Address(tenant, command.session_id),
        lambda session: answer_question(session, replied),
    )
    if isinstance(answer, AskNotPending):
        raise QuestionNotFound(command.request_id)
    return answer


async def reject(context: ContextDep, tenant: TenantParam, command: QuestionCommand) -> SeqReached:
    """Dismiss a question, which stops the session as a decline does. Raises QuestionNotFound."""
    rejected = QuestionRejected(request_id=command.request_id)
    answer = await answer_ask(
        context,
        Address(tenant, command.session_id),
        lambda session: reject_question(session, rejected),
    )
    if isinstance(answer, AskNotPending):
        raise QuestionNotFound(command.request_id)
    return answer


async def list_(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> PendingQuestions:
    """The pending questions of this session, oldest first, from the log."""
    session = await load(context, Address(tenant, command.session_id))
    questions = session.asks.questions.values()
    return PendingQuestions(requests=tuple(pending.request for pending in questions))
