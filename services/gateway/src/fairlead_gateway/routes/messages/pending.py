"""Pending input: listed in order, withdrawn, changed while the model has not seen it."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer, done
from fairlead_gateway.http.incoming import Nothing, message_id_of
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.commands import ask, tell
from fairlead_gateway.routes.messages.prompt import ReceiptAnswer
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import CancelInput, EditBody, EditPendingInput, PendingInputs
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import (
    Conflict,
    MessageNotFound,
    PayloadTooLarge,
    ServiceUnavailable,
    SessionNotFound,
)
from fairlead_schema.model import Model
from fairlead_schema.prompt import Receipt

_ERRORS = (SessionNotFound, MessageNotFound, Conflict, ServiceUnavailable)


class PendingAnswer(Model):
    data: tuple[Receipt, ...]


async def _list(call: Call[Nothing, Nothing]) -> Response:
    command = SessionCommand(session_id=call.at.session_id)
    found = await ask(
        call.runtime, call.tenant, "session.pending", command, CommandAnswer[PendingInputs]
    )
    return answer(PendingAnswer(data=found.inputs))


async def _cancel(call: Call[Nothing, Nothing]) -> Response:
    message_id = message_id_of(call.request)
    command = CancelInput(session_id=call.at.session_id, message_id=message_id)
    await tell(call.runtime, call.at, "session.cancel", command)
    return done()


async def _edit(call: Call[Nothing, EditBody]) -> Response:
    # What is absent stays absent; the parts were checked when they came in.
    command = EditPendingInput.model_construct(
        session_id=call.at.session_id,
        message_id=message_id_of(call.request),
        prompt=call.body.prompt,
        delivery=call.body.delivery,
    )
    receipt = await ask(call.runtime, call.tenant, "session.edit", command, CommandAnswer[Receipt])
    return answer(ReceiptAnswer(data=receipt))


LIST = Operation(
    id="input.list",
    method="GET",
    path="/api/session/{sessionID}/input",
    summary="The inputs that are admitted and not yet promoted, in their order.",
    respond=_list,
    query=Nothing,
    body=Nothing,
    answer=PendingAnswer,
    commands=True,
    errors=(SessionNotFound, ServiceUnavailable),
)

CANCEL = Operation(
    id="input.cancel",
    method="DELETE",
    path="/api/session/{sessionID}/input/{messageID}",
    summary="Withdraw one pending input; a conflict once it is promoted.",
    respond=_cancel,
    query=Nothing,
    body=Nothing,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

EDIT = Operation(
    id="input.edit",
    method="PATCH",
    path="/api/session/{sessionID}/input/{messageID}",
    summary="Change one pending input, or its delivery; a conflict once it is promoted.",
    respond=_edit,
    query=Nothing,
    body=EditBody,
    answer=ReceiptAnswer,
    commands=True,
    errors=(*_ERRORS, PayloadTooLarge),
)
