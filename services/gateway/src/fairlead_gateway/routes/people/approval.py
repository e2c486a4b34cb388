"""Saved approvals over HTTP: what stays permitted in a project, and taking it back."""

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer, done
from fairlead_gateway.http.incoming import Nothing, Text, checked
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.commands import ask
from fairlead_gateway.routes.server.location import LocationQuery, selected
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


async def _list(call: Call[SavedQuery, Nothing]) -> Response:
    command = ListApprovals(project_id=call.query.project_id or selected(call).project.id)
    found = await ask(
        call.runtime, call.tenant, "approval.list", command, CommandAnswer[SavedApprovals]
    )
    return answer(SavedAnswer(data=found.saved))


async def _remove(call: Call[LocationQuery, Nothing]) -> Response:
    command = checked(RemoveApproval, {"id": call.request.path_params["id"]}, "Params")
    await ask(call.runtime, call.tenant, "approval.remove", command, CommandAnswer[ApprovalRemoved])
    return done()


LIST = Operation(
    id="permission.saved.list",
    method="GET",
    path="/api/permission/saved",
    summary="What people approved for always in a project.",
    respond=_list,
    query=SavedQuery,
    body=Nothing,
    answer=SavedAnswer,
    errors=(ServiceUnavailable,),
)

REMOVE = Operation(
    id="permission.saved.remove",
    method="DELETE",
    path="/api/permission/saved/{id}",
    summary="Take one approval back; one that is not there is gone already.",
    respond=_remove,
    query=LocationQuery,
    body=Nothing,
    answer=None,
    status=204,
    errors=(ServiceUnavailable,),
)
