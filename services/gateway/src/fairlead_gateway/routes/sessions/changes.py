"""Changes to a session: agent, model, budget, archive and purge."""

from starlette.responses import Response

from fairlead_gateway.http.answers import empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_session_command
from fairlead_schema.commands.session import (
    AgentBody,
    BudgetBody,
    ModelBody,
    SessionCommand,
    SetBudget,
    SwitchAgent,
    SwitchModel,
)
from fairlead_schema.errors import Conflict, ProviderNotFound, ServiceUnavailable, SessionNotFound
from fairlead_schema.model import InputModel

_ERRORS = (SessionNotFound, ServiceUnavailable)


class DeleteQuery(InputModel):
    purge: bool = False


async def _agent(request: ApiRequest[EmptyInput, AgentBody]) -> Response:
    command = SwitchAgent(session_id=request.at.session_id, agent=request.body.agent)
    await send_session_command(request, "session.agent", command)
    return empty_answer()


async def _model(request: ApiRequest[EmptyInput, ModelBody]) -> Response:
    command = SwitchModel(session_id=request.at.session_id, model=request.body.model)
    await send_session_command(request, "session.model", command)
    return empty_answer()


async def _budget(request: ApiRequest[EmptyInput, BudgetBody]) -> Response:
    # The body was validated already. Validation here would set absent fields.
    limits, session_id = request.body, request.at.session_id
    command = SetBudget.model_construct(
        session_id=session_id, cost=limits.cost, tokens=limits.tokens
    )
    await send_session_command(request, "session.budget", command)
    return empty_answer()


async def _delete(request: ApiRequest[DeleteQuery, EmptyInput]) -> Response:
    verb = "session.delete" if request.query.purge else "session.archive"
    await send_session_command(request, verb, SessionCommand(session_id=request.at.session_id))
    return empty_answer()


async def _unarchive(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    command = SessionCommand(session_id=request.at.session_id)
    await send_session_command(request, "session.unarchive", command)
    return empty_answer()


AGENT = Operation(
    id="session.agent",
    method="POST",
    path="/api/session/{sessionID}/agent",
    scope="session:write",
    summary="Later turns speak as another agent.",
    respond=_agent,
    body=AgentBody,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

MODEL = Operation(
    id="session.model",
    method="POST",
    path="/api/session/{sessionID}/model",
    scope="session:write",
    summary="Later turns use another model; the one in use already changes nothing.",
    respond=_model,
    body=ModelBody,
    answer=None,
    status=204,
    commands=True,
    errors=(ProviderNotFound, *_ERRORS),
)

BUDGET = Operation(
    id="session.budget",
    method="POST",
    path="/api/session/{sessionID}/budget",
    scope="session:write",
    summary="Set what the session may use in all; an absent limit is lifted.",
    respond=_budget,
    body=BudgetBody,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

UNARCHIVE = Operation(
    id="session.unarchive",
    method="POST",
    path="/api/session/{sessionID}/unarchive",
    scope="session:write",
    summary="List an archived session again, and let it take prompts.",
    respond=_unarchive,
    answer=None,
    status=204,
    commands=True,
    errors=(Conflict, *_ERRORS),
)

DELETE = Operation(
    id="session.delete",
    method="DELETE",
    path="/api/session/{sessionID}",
    scope="session:write",
    summary="Archive the session; with `purge` erase it for ever.",
    respond=_delete,
    query=DeleteQuery,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)
