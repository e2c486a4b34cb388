"""`GET /api/location`, and how a request selects the location it speaks of."""

from typing import TypeVar

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Nothing, Text, header_text
from fairlead_gateway.http.operation import Body, Call, Operation
from fairlead_schema.location import LocationInfo, Project, project_id
from fairlead_schema.model import InputModel


class LocationQuery(InputModel):
    directory: Text | None = Field(default=None, alias="location[directory]", min_length=1)
    workspace: Text | None = Field(default=None, alias="location[workspace]", pattern="^wrk")


Located = TypeVar("Located", bound=LocationQuery)


def selected(call: Call[Located, Body]) -> LocationInfo:
    """The location of a request: from its query, else its headers, else the server's own."""
    query, request = call.query, call.request
    directory = (
        query.directory
        or header_text(request, "x-opencode-directory")
        or call.runtime.settings.directory
    )
    return LocationInfo(
        directory=directory,
        workspace_id=query.workspace or header_text(request, "x-opencode-workspace"),
        project=Project(id=project_id(directory), directory=directory),
    )


def named(call: Call[Located, Body]) -> str | None:
    """The directory that a request selects itself; None when it leaves that to the server."""
    return call.query.directory or header_text(call.request, "x-opencode-directory")


async def _read(call: Call[LocationQuery, Nothing]) -> Response:
    return answer(selected(call))


READ = Operation(
    id="location.read",
    method="GET",
    path="/api/location",
    summary="The selected location and its project.",
    respond=_read,
    query=LocationQuery,
    body=Nothing,
    answer=LocationInfo,
)
