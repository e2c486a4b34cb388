"""`POST /api/session/{sessionID}/skill`: put the instructions of a skill into a session, once."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.routes.messages.input_command import send_input
from fairlead_gateway.routes.messages.prompt import ReceiptAnswer
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import LoadSkill, SkillBody
from fairlead_schema.errors import Conflict, LimitReached, ServiceUnavailable, SessionNotFound
from fairlead_schema.prompt import Receipt


async def _load_skill(request: ApiRequest[EmptyInput, SkillBody]) -> Response:
    receipt = await send_input(request, "session.skill", LoadSkill, CommandAnswer[Receipt])
    return answer(ReceiptAnswer(data=receipt))


SKILL = Operation(
    id="session.skill",
    method="POST",
    path="/api/session/{sessionID}/skill",
    scope="session:write",
    summary="Put the instructions of a skill into the session; an exact retry gets the same receipt.",
    respond=_load_skill,
    body=SkillBody,
    answer=ReceiptAnswer,
    commands=True,
    errors=(SessionNotFound, Conflict, LimitReached, ServiceUnavailable),
)
