"""Gives the answers of people to the asks of a session and of its sub-agents."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from fairlead_gateway.http.caller import require_scope
from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.log.commands import send_command
from fairlead_gateway.log.session_state import load_session
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.asks import QuestionCommand, ReplyPermission, ReplyQuestion
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.ids import SessionId
from fairlead_schema.permission import Reply
from fairlead_schema.subjects import Address

Json: TypeAlias = dict[str, Any]

PERMISSION: Final = "per"


async def open_asks(request: ApiRequest[Any, Any], at: Address) -> dict[str, Json]:
    """The asks that wait, of the session from the log and of its sub-agents from the read models."""
    session, reads = await load_session(request.runtime, at), request.runtime.read_model
    own = [
        *(ask.request.wire() for ask in session.asks.permissions.values()),
        *(ask.request.wire() for ask in session.asks.questions.values()),
    ]
    children = [
        *[dict(ask) for ask in await reads.child_asks(at, "permission")],
        *[dict(ask) for ask in await reads.child_asks(at, "question")],
    ]
    return {ask["id"]: ask for ask in (*own, *children)}


def is_permission(request_id: str) -> bool:
    """Whether an ask is a permission. Otherwise it is a question."""
    return request_id.startswith(PERMISSION)


async def reply_permission(
    request: ApiRequest[Any, Any],
    session_id: SessionId,
    request_id: str,
    reply: Reply,
    message: str | None = None,
) -> None:
    """Answer a permission. Raises PermissionNotFound, Conflict."""
    if reply == "always":
        require_scope(request.principal, "approval:save")
    fields: Json = {} if message is None else {"message": message}
    command = ReplyPermission(session_id=session_id, request_id=request_id, reply=reply, **fields)
    await _send(request, "permission.reply", command)


async def reply_question(
    request: ApiRequest[Any, Any],
    session_id: SessionId,
    request_id: str,
    answers: Sequence[Sequence[str]] | None,
) -> None:
    """Answer a question, or dismiss it with None. Raises QuestionNotFound, Conflict."""
    if answers is None:
        command: SessionCommand = QuestionCommand(session_id=session_id, request_id=request_id)
        await _send(request, "question.reject", command)
        return
    given = tuple(tuple(labels) for labels in answers)
    command = ReplyQuestion(session_id=session_id, request_id=request_id, answers=given)
    await _send(request, "question.reply", command)


async def _send(request: ApiRequest[Any, Any], verb: str, command: SessionCommand) -> None:
    await send_command(request, verb, command, CommandAnswer[SeqReached])
