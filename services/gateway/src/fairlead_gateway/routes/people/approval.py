"""Saved approvals: list what people permitted for always in a project, and remove it."""

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, Text, validate
from fairlead_gateway.log.commands import send_command
from fairlead_gateway.routes.server.location import LocationQuery, select_location
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.asks import (
    ApprovalRemoved,
    ListApprovals,
    RemoveApproval,
    SavedApprovals,
)
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.model import Model
from fairlead_schema.permission import SavedPermission


class SavedQuery(LocationQuery):
    project_id: Text | None = Field(default=None, min_length=1, max_length=256)


class SavedAnswer(Model):
    data: tuple[SavedPermission, ...]


async def _list(request: ApiRequest[SavedQuery, EmptyInput]) -> Response:
    command = ListApprovals(
        project_id=request.query.project_id or select_location(request).project.id
    )
    approvals = await send_command(request, "approval.list", command, CommandAnswer[SavedApprovals])
    return answer(SavedAnswer(data=approvals.saved))


async def _remove(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    command = validate(RemoveApproval, {"id": request.http.path_params["id"]}, "Params")
    await send_command(request, "approval.remove", command, CommandAnswer[ApprovalRemoved])
    return empty_answer()


LIST = Operation(
    id="permission.saved.list",
    method="GET",
    path="/api/permission/saved",
    scope="session:read",
    summary="What people approved for always in a project.",
    respond=_list,
    query=SavedQuery,
    answer=SavedAnswer,
    errors=(ServiceUnavailable,),
)

REMOVE = Operation(
    id="permission.saved.remove",
    method="DELETE",
    path="/api/permission/saved/{id}",
    scope="approval:save",
    summary="Remove one approval; an unknown one is already removed.",
    respond=_remove,
    query=LocationQuery,
    answer=None,
    status=204,
    errors=(ServiceUnavailable,),
)
