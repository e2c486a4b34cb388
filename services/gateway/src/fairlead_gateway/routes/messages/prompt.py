"""`POST /api/session/{sessionID}/prompt`: admit one prompt, durably, once."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.commands import ask, message_id_for
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


async def _admit(call: Call[Nothing, PromptBody]) -> Response:
    wanted = call.body
    # Without an id, ingest mints one; the parts were checked when they came in.
    command = AdmitPrompt.model_construct(
        session_id=call.at.session_id,
        id=wanted.id or message_id_for(call.request, call.tenant),
        prompt=wanted.prompt,
        delivery=wanted.delivery,
        resume=wanted.resume,
        expected_turn=wanted.expected_turn,
    )
    receipt = await ask(
        call.runtime, call.tenant, "session.prompt", command, CommandAnswer[Receipt]
    )
    return answer(ReceiptAnswer(data=receipt))


ADMIT = Operation(
    id="session.prompt",
    method="POST",
    path="/api/session/{sessionID}/prompt",
    summary="Admit one prompt; an exact retry gets the same receipt.",
    respond=_admit,
    query=Nothing,
    body=PromptBody,
    answer=ReceiptAnswer,
    commands=True,
    errors=(SessionNotFound, Conflict, PayloadTooLarge, LimitReached, ServiceUnavailable),
)
