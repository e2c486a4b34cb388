"""`POST /api/session/{sessionID}/prompt`: admit one prompt, durably, once."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import message_id_from_key, send_command
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
from fairlead_service import ids


class ReceiptAnswer(Model):
    data: Receipt


async def _admit(request: ApiRequest[EmptyInput, PromptBody]) -> Response:
    body = request.body
    # The body was validated already. An id makes the command repeatable.
    id_ = body.id or message_id_from_key(request.http, request.tenant)
    command = AdmitPrompt.model_construct(
        session_id=request.at.session_id,
        id=id_,
        minted_id=ids.message_id() if id_ is None else None,
        prompt=body.prompt,
        delivery=body.delivery,
        resume=body.resume,
        expected_turn=body.expected_turn,
    )
    receipt = await send_command(request, "session.prompt", command, CommandAnswer[Receipt])
    return answer(ReceiptAnswer(data=receipt))


ADMIT = Operation(
    id="session.prompt",
    method="POST",
    path="/api/session/{sessionID}/prompt",
    scope="session:write",
    summary="Admit one prompt; an exact retry gets the same receipt.",
    respond=_admit,
    query=EmptyInput,
    body=PromptBody,
    answer=ReceiptAnswer,
    commands=True,
    errors=(SessionNotFound, Conflict, PayloadTooLarge, LimitReached, ServiceUnavailable),
)
