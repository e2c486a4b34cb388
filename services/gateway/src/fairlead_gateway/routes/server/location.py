"""`GET /api/location`, and how a request selects its location."""

from typing import TypeVar

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Body, Operation
from fairlead_gateway.http.request_parser import EmptyInput, Text, header_text
from fairlead_schema.location import LocationInfo, Project, project_id
from fairlead_schema.model import InputModel


class LocationQuery(InputModel):
    directory: Text | None = Field(default=None, alias="location[directory]", min_length=1)
    workspace: Text | None = Field(default=None, alias="location[workspace]", pattern="^wrk")


Located = TypeVar("Located", bound=LocationQuery)


def select_location(request: ApiRequest[Located, Body]) -> LocationInfo:
    """The location of a request: from its query, its headers, its tenant or the server's settings."""
    settings = request.runtime.settings
    directory = (
        requested_directory(request)
        or settings.default_location(request.tenant)
        or settings.directory
    )
    return LocationInfo(
        directory=directory,
        workspace_id=request.query.workspace or header_text(request.http, "x-opencode-workspace"),
        project=Project(id=project_id(directory), directory=directory),
    )


def requested_directory(request: ApiRequest[Located, Body]) -> str | None:
    """The directory that the request names; None if it names none."""
    return request.query.directory or header_text(request.http, "x-opencode-directory")


async def _read_location(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    return answer(select_location(request))


READ = Operation(
    id="location.read",
    method="GET",
    path="/api/location",
    scope="session:read",
    summary="The selected location and its project.",
    respond=_read_location,
    query=LocationQuery,
    answer=LocationInfo,
)
