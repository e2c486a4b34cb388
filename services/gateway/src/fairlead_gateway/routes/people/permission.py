"""Permissions over HTTP: ask, list, read, reply. A parent's list includes its children's requests."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.caller import require_scope
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import PERMISSION_ID, EmptyInput, request_id_of
from fairlead_gateway.log.commands import (
    permission_id_from_key,
    send_command,
    send_session_command,
)
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.routes.server.location import (
    LocationQuery,
    requested_directory,
    select_location,
)
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.asks import (
    AskPermission,
    PermissionBody,
    PermissionCommand,
    PermissionDecision,
    ReplyBody,
    ReplyPermission,
)
from fairlead_schema.errors import Conflict, PermissionNotFound, ServiceUnavailable, SessionNotFound
from fairlead_schema.location import LocationInfo
from fairlead_schema.model import Model
from fairlead_schema.permission import PermissionRequest

_ERRORS = (SessionNotFound, PermissionNotFound, ServiceUnavailable)


class PermissionsAnswer(Model):
    data: tuple[PermissionRequest, ...]


class PermissionAnswer(Model):
    data: PermissionRequest


class DecisionAnswer(Model):
    data: PermissionDecision


class LocatedPermissions(Model):
    location: LocationInfo
    data: tuple[PermissionRequest, ...]


async def _list_all_sessions(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    """List the asks of the requested directory, or of every directory."""
    asks = await request.runtime.read_model.asks(
        request.tenant, "permission", directory=requested_directory(request)
    )
    data = tuple(PermissionRequest.model_validate(ask) for ask in asks)
    return answer(LocatedPermissions(location=select_location(request), data=data))


async def _list(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    """List the asks of the session from the log, and those of its descendants from the read models."""
    session = await load_session(request.runtime, request.at)
    child_asks = await request.runtime.read_model.child_asks(request.at, "permission")
    own = tuple(ask.request for ask in session.asks.permissions.values())
    children = tuple(PermissionRequest.model_validate(ask) for ask in child_asks)
    return answer(PermissionsAnswer(data=(*own, *children)))


async def _read_request(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    command = PermissionCommand(session_id=request.at.session_id, request_id=_id(request))
    permission = await send_command(
        request, "permission.get", command, CommandAnswer[PermissionRequest]
    )
    return answer(PermissionAnswer(data=permission))


async def _ask(request: ApiRequest[EmptyInput, PermissionBody]) -> Response:
    fields = {name: getattr(request.body, name) for name in request.body.model_fields_set}
    if request.body.id is None:
        fields["id"] = permission_id_from_key(request.http, request.tenant)
    command = AskPermission.model_construct(session_id=request.at.session_id, **fields)
    decision = await send_command(
        request,
        "permission.ask",
        command,
        CommandAnswer[PermissionDecision],
    )
    return answer(DecisionAnswer(data=decision))


async def _reply(request: ApiRequest[EmptyInput, ReplyBody]) -> Response:
    if request.body.reply == "always":
        require_scope(request.principal, "approval:save")
    command = ReplyPermission.model_construct(
        session_id=request.at.session_id,
        request_id=_id(request),
        reply=request.body.reply,
        message=request.body.message,
    )
    await send_session_command(request, "permission.reply", command)
    return empty_answer()


def _id(request: ApiRequest[EmptyInput, EmptyInput] | ApiRequest[EmptyInput, ReplyBody]) -> str:
    return request_id_of(request.http, PERMISSION_ID)


LIST_ALL_SESSIONS = Operation(
    id="permission.request.list",
    method="GET",
    path="/api/permission/request",
    scope="session:read",
    summary="Permission requests that wait for a person, in every session.",
    respond=_list_all_sessions,
    query=LocationQuery,
    answer=LocatedPermissions,
    errors=(ServiceUnavailable,),
)

LIST = Operation(
    id="permission.list",
    method="GET",
    path="/api/session/{sessionID}/permission",
    scope="session:read",
    summary="Permission requests that wait in this session and in its descendants.",
    respond=_list,
    answer=PermissionsAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)

ASK = Operation(
    id="permission.ask",
    method="POST",
    path="/api/session/{sessionID}/permission",
    scope="session:write",
    summary="Judge by the rules; if a person must decide, add a request.",
    respond=_ask,
    body=PermissionBody,
    answer=DecisionAnswer,
    commands=True,
    errors=(SessionNotFound, Conflict, ServiceUnavailable),
)

READ = Operation(
    id="permission.get",
    method="GET",
    path="/api/session/{sessionID}/permission/{requestID}",
    scope="session:read",
    summary="One permission request that waits in this session.",
    respond=_read_request,
    answer=PermissionAnswer,
    commands=True,
    errors=_ERRORS,
)

REPLY = Operation(
    id="permission.reply",
    method="POST",
    path="/api/session/{sessionID}/permission/{requestID}/reply",
    scope="ask:reply",
    summary="Permit once or always, or reject; a message beside a reject reaches the model.",
    respond=_reply,
    body=ReplyBody,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)
