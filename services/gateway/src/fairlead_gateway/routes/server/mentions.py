"""`GET /api/command`, `/api/skill` and `/api/reference`: what a person may name in a prompt."""

from typing import Literal

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_command
from fairlead_gateway.routes.server.location import LocationQuery, select_location
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.location_catalog import (
    CommandInfo,
    ListSkills,
    ReferenceInfo,
    SkillInfo,
    Skills,
)
from fairlead_schema.errors import Forbidden, ServiceUnavailable
from fairlead_schema.location import LocationInfo, LocationRef
from fairlead_schema.model import Model


class ReferenceSource(Model):
    type: Literal["local"] = "local"
    path: str


class ListedReference(Model):
    """A reference as clients read it. The path of a text is empty: its name brings it into a prompt."""

    name: str
    path: str
    description: str | None = None
    source: ReferenceSource


class CommandsAnswer(Model):
    location: LocationInfo
    data: tuple[CommandInfo, ...]


class SkillsAnswer(Model):
    location: LocationInfo
    data: tuple[SkillInfo, ...]


class ReferencesAnswer(Model):
    location: LocationInfo
    data: tuple[ListedReference, ...]


async def _commands(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    data = request.runtime.settings.list_commands(await _load_skills(request))
    return answer(CommandsAnswer(location=select_location(request), data=data))


async def _skills(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    data = await _load_skills(request)
    return answer(SkillsAnswer(location=select_location(request), data=data))


async def _references(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    data = tuple(map(_reference, request.runtime.settings.references))
    return answer(ReferencesAnswer(location=select_location(request), data=data))


async def _load_skills(
    request: ApiRequest[LocationQuery, EmptyInput],
) -> tuple[SkillInfo, ...]:
    """The skills of the location, as the tools service reads them."""
    location = select_location(request)
    place = LocationRef(directory=location.directory, workspace_id=location.workspace_id)
    command = ListSkills(location=place)
    return (await send_command(request, "skill.list", command, CommandAnswer[Skills])).skills


def _reference(reference: ReferenceInfo) -> ListedReference:
    path = reference.path or ""
    return ListedReference(
        name=reference.name,
        path=path,
        description=reference.description,
        source=ReferenceSource(path=path),
    )


COMMANDS = Operation(
    id="command.list",
    method="GET",
    path="/api/command",
    scope="session:read",
    summary="The slash commands: configured ones, and skills of the location with a slash.",
    respond=_commands,
    query=LocationQuery,
    answer=CommandsAnswer,
    errors=(Forbidden, ServiceUnavailable),
)

SKILLS = Operation(
    id="skill.list",
    method="GET",
    path="/api/skill",
    scope="session:read",
    summary="The skills of the location, with their content.",
    respond=_skills,
    query=LocationQuery,
    answer=SkillsAnswer,
    errors=(Forbidden, ServiceUnavailable),
)

REFERENCES = Operation(
    id="reference.list",
    method="GET",
    path="/api/reference",
    scope="session:read",
    summary="The configured references.",
    respond=_references,
    query=LocationQuery,
    answer=ReferencesAnswer,
)
