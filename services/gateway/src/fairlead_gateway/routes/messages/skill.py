"""`POST /api/session/{sessionID}/skill`: put the instructions of a skill into a session, once."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import message_id_from_key, send_command
from fairlead_gateway.routes.messages.prompt import ReceiptAnswer
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import LoadSkill, SkillBody
from fairlead_schema.errors import Conflict, LimitReached, ServiceUnavailable, SessionNotFound
from fairlead_schema.prompt import Receipt
from fairlead_service import ids


async def _load_skill(request: ApiRequest[EmptyInput, SkillBody]) -> Response:
    body = request.body
    id_ = body.id or message_id_from_key(request.http, request.tenant)
    # The body was validated already. An id makes the command repeatable.
    command = LoadSkill.model_construct(
        session_id=request.at.session_id,
        id=id_,
        minted_id=ids.message_id() if id_ is None else None,
        skill=body.skill,
        delivery=body.delivery,
        resume=body.resume,
    )
    receipt = await send_command(request, "session.skill", command, CommandAnswer[Receipt])
    return answer(ReceiptAnswer(data=receipt))


SKILL = Operation(
    id="session.skill",
    method="POST",
    path="/api/session/{sessionID}/skill",
    scope="session:write",
    summary="Put the instructions of a skill into the session; an exact retry gets the same receipt.",
    respond=_load_skill,
    query=EmptyInput,
    body=SkillBody,
    answer=ReceiptAnswer,
    commands=True,
    errors=(SessionNotFound, Conflict, LimitReached, ServiceUnavailable),
)
