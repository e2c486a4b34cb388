"""Changes to a session itself: agent, model, location, budget, archive and purge."""

from starlette.responses import Response

from fairlead_gateway.http.answers import done
from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.commands import tell
from fairlead_schema.commands.session import (
    AgentBody,
    BudgetBody,
    ModelBody,
    MoveBody,
    MoveSession,
    SessionCommand,
    SetBudget,
    SwitchAgent,
    SwitchModel,
)
from fairlead_schema.errors import ProviderNotFound, ServiceUnavailable, SessionNotFound
from fairlead_schema.model import InputModel

_ERRORS = (SessionNotFound, ServiceUnavailable)


class DeleteQuery(InputModel):
    purge: bool = False


async def _agent(call: Call[Nothing, AgentBody]) -> Response:
    command = SwitchAgent(session_id=call.at.session_id, agent=call.body.agent)
    await tell(call.runtime, call.at, "session.agent", command)
    return done()


async def _model(call: Call[Nothing, ModelBody]) -> Response:
    command = SwitchModel(session_id=call.at.session_id, model=call.body.model)
    await tell(call.runtime, call.at, "session.model", command)
    return done()


async def _move(call: Call[Nothing, MoveBody]) -> Response:
    command = MoveSession(session_id=call.at.session_id, location=call.body.location)
    await tell(call.runtime, call.at, "session.move", command)
    return done()


async def _budget(call: Call[Nothing, BudgetBody]) -> Response:
    # What is absent stays absent; the parts were checked when they came in.
    limits, session_id = call.body, call.at.session_id
    command = SetBudget.model_construct(
        session_id=session_id, cost=limits.cost, tokens=limits.tokens
    )
    await tell(call.runtime, call.at, "session.budget", command)
    return done()


async def _delete(call: Call[DeleteQuery, Nothing]) -> Response:
    verb = "session.delete" if call.query.purge else "session.archive"
    await tell(call.runtime, call.at, verb, SessionCommand(session_id=call.at.session_id))
    return done()


AGENT = Operation(
    id="session.agent",
    method="POST",
    path="/api/session/{sessionID}/agent",
    summary="Later turns speak as another agent.",
    respond=_agent,
    query=Nothing,
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
    summary="Later turns use another model; the one in use already changes nothing.",
    respond=_model,
    query=Nothing,
    body=ModelBody,
    answer=None,
    status=204,
    commands=True,
    errors=(ProviderNotFound, *_ERRORS),
)

MOVE = Operation(
    id="session.move",
    method="POST",
    path="/api/session/{sessionID}/move",
    summary="Work in another location from here on; what runs at the old one is interrupted.",
    respond=_move,
    query=Nothing,
    body=MoveBody,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

BUDGET = Operation(
    id="session.budget",
    method="POST",
    path="/api/session/{sessionID}/budget",
    summary="Set what the session may use in all; an absent limit is lifted.",
    respond=_budget,
    query=Nothing,
    body=BudgetBody,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

DELETE = Operation(
    id="session.delete",
    method="DELETE",
    path="/api/session/{sessionID}",
    summary="Archive the session; with `purge` erase it for ever.",
    respond=_delete,
    query=DeleteQuery,
    body=Nothing,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)
