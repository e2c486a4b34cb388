"""Pending inputs: list, cancel and edit them before the model sees them."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, message_id_of
from fairlead_gateway.log.commands import send_command, send_session_command
from fairlead_gateway.routes.messages.prompt import ReceiptAnswer
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import (
    CancelInput,
    EditBody,
    EditPendingInput,
    PendingInputs,
    ShellReceipt,
)
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
    shells: tuple[ShellReceipt, ...] = ()
    """People's commands that have not started. The commands of a template name their prompt."""


async def _list(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    command = SessionCommand(session_id=request.at.session_id)
    pending = await send_command(request, "session.pending", command, CommandAnswer[PendingInputs])
    return answer(PendingAnswer(data=pending.inputs, shells=pending.shells))


async def _cancel(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    message_id = message_id_of(request.http)
    command = CancelInput(session_id=request.at.session_id, message_id=message_id)
    await send_session_command(request, "session.cancel", command)
    return empty_answer()


async def _edit(request: ApiRequest[EmptyInput, EditBody]) -> Response:
    # The body was validated already. Validation here would set absent fields.
    command = EditPendingInput.model_construct(
        session_id=request.at.session_id,
        message_id=message_id_of(request.http),
        prompt=request.body.prompt,
        delivery=request.body.delivery,
    )
    receipt = await send_command(request, "session.edit", command, CommandAnswer[Receipt])
    return answer(ReceiptAnswer(data=receipt))


LIST = Operation(
    id="input.list",
    method="GET",
    path="/api/session/{sessionID}/input",
    scope="session:read",
    summary="The inputs that are admitted and not yet promoted, and the commands that have not started.",
    respond=_list,
    answer=PendingAnswer,
    commands=True,
    errors=(SessionNotFound, ServiceUnavailable),
)

CANCEL = Operation(
    id="input.cancel",
    method="DELETE",
    path="/api/session/{sessionID}/input/{messageID}",
    scope="session:write",
    summary="Cancel one pending input or command; a conflict once it is promoted or has started.",
    respond=_cancel,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

EDIT = Operation(
    id="input.edit",
    method="PATCH",
    path="/api/session/{sessionID}/input/{messageID}",
    scope="session:write",
    summary="Change one pending input, or its delivery; a conflict once it is promoted.",
    respond=_edit,
    body=EditBody,
    answer=ReceiptAnswer,
    commands=True,
    errors=(*_ERRORS, PayloadTooLarge),
)
