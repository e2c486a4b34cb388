"""Permissions over HTTP: ask, list, read, reply; a child's requests are on its parents' lists."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer, done
from fairlead_gateway.http.incoming import PERMISSION_ID, Nothing, request_id_of
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.commands import ask, tell
from fairlead_gateway.log.session_state import folded
from fairlead_gateway.routes.server.location import LocationQuery, named, selected
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


class JudgedAnswer(Model):
    data: PermissionDecision


class LocatedPermissions(Model):
    location: LocationInfo
    data: tuple[PermissionRequest, ...]


async def _everywhere(call: Call[LocationQuery, Nothing]) -> Response:
    """Of the directory that the request names, else of every one."""
    found = await call.runtime.read.asks(call.tenant, "permission", directory=named(call))
    data = tuple(PermissionRequest.model_validate(one) for one in found)
    return answer(LocatedPermissions(location=selected(call), data=data))


async def _list(call: Call[Nothing, Nothing]) -> Response:
    """Its own from the log, those of the sessions below it from the read models."""
    session = await folded(call.runtime, call.at)
    below = await call.runtime.read.child_asks(call.at, "permission")
    own = tuple(one.request for one in session.asks.permissions.values())
    children = tuple(PermissionRequest.model_validate(one) for one in below)
    return answer(PermissionsAnswer(data=(*own, *children)))


async def _read(call: Call[Nothing, Nothing]) -> Response:
    command = PermissionCommand(session_id=call.at.session_id, request_id=_id(call))
    found = await ask(
        call.runtime, call.tenant, "permission.get", command, CommandAnswer[PermissionRequest]
    )
    return answer(PermissionAnswer(data=found))


async def _ask(call: Call[Nothing, PermissionBody]) -> Response:
    said = {name: getattr(call.body, name) for name in call.body.model_fields_set}
    command = AskPermission.model_construct(session_id=call.at.session_id, **said)
    judged = await ask(
        call.runtime, call.tenant, "permission.ask", command, CommandAnswer[PermissionDecision]
    )
    return answer(JudgedAnswer(data=judged))


async def _reply(call: Call[Nothing, ReplyBody]) -> Response:
    command = ReplyPermission.model_construct(
        session_id=call.at.session_id,
        request_id=_id(call),
        reply=call.body.reply,
        message=call.body.message,
    )
    await tell(call.runtime, call.at, "permission.reply", command)
    return done()


def _id(call: Call[Nothing, Nothing] | Call[Nothing, ReplyBody]) -> str:
    return request_id_of(call.request, PERMISSION_ID)


EVERYWHERE = Operation(
    id="permission.request.list",
    method="GET",
    path="/api/permission/request",
    summary="What waits for a permission, in every session.",
    respond=_everywhere,
    query=LocationQuery,
    body=Nothing,
    answer=LocatedPermissions,
    errors=(ServiceUnavailable,),
)

LIST = Operation(
    id="permission.list",
    method="GET",
    path="/api/session/{sessionID}/permission",
    summary="What waits for a permission in this session and in those below it.",
    respond=_list,
    query=Nothing,
    body=Nothing,
    answer=PermissionsAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)

ASK = Operation(
    id="permission.ask",
    method="POST",
    path="/api/session/{sessionID}/permission",
    summary="Judge by the rules; where a person decides, leave a request.",
    respond=_ask,
    query=Nothing,
    body=PermissionBody,
    answer=JudgedAnswer,
    commands=True,
    errors=(SessionNotFound, Conflict, ServiceUnavailable),
)

READ = Operation(
    id="permission.get",
    method="GET",
    path="/api/session/{sessionID}/permission/{requestID}",
    summary="One request that waits in this session.",
    respond=_read,
    query=Nothing,
    body=Nothing,
    answer=PermissionAnswer,
    commands=True,
    errors=_ERRORS,
)

REPLY = Operation(
    id="permission.reply",
    method="POST",
    path="/api/session/{sessionID}/permission/{requestID}/reply",
    summary="Permit once or always, or reject; a message beside a reject reaches the model.",
    respond=_reply,
    query=Nothing,
    body=ReplyBody,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)
