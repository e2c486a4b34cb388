"""`POST /api/session/{sessionID}/prompt`: admit one prompt, durably, once."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.routes.messages.input_command import send_input
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import AdmitPrompt, PromptBody
from fairlead_schema.errors import (
    Conflict,
    LimitReached,
    PayloadTooLarge,
    ServiceUnavailable,
    SessionNotFound,
)
from fairlead_schema.model import Model
from fairlead_schema.prompt import Receipt


class ReceiptAnswer(Model):
    data: Receipt


async def _admit(request: ApiRequest[EmptyInput, PromptBody]) -> Response:
    receipt = await send_input(request, "session.prompt", AdmitPrompt, CommandAnswer[Receipt])
    return answer(ReceiptAnswer(data=receipt))


ADMIT = Operation(
    id="session.prompt",
    method="POST",
    path="/api/session/{sessionID}/prompt",
    scope="session:write",
    summary="Admit one prompt; an exact retry gets the same receipt.",
    respond=_admit,
    body=PromptBody,
    answer=ReceiptAnswer,
    commands=True,
    errors=(SessionNotFound, Conflict, PayloadTooLarge, LimitReached, ServiceUnavailable),
)
