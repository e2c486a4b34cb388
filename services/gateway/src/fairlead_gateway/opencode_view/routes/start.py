"""What the terminal client asks when it starts: models, agents, paths, and views that stay empty."""

from typing import Any, Final, TypeAlias

from starlette.responses import Response

from fairlead_gateway.http.operation import AnyOperation, ApiRequest
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.opencode_view.routes.view_operation import (
    ViewQuery,
    json_answer,
    own_directory,
    view_operation,
)
from fairlead_schema.location import LocationRef, project_id
from fairlead_schema.session_info import SessionInfo, SessionTime
from fairlead_service.config.providers import ModelConfig

Json: TypeAlias = dict[str, Any]
ViewRequest: TypeAlias = ApiRequest[ViewQuery, EmptyInput]

_EMPTY_LISTS: Final = (
    "/lsp",
    "/formatter",
    "/experimental/workspace",
    "/experimental/workspace/status",
    "/project/{projectID}/directories",
)
_EMPTY_OBJECTS: Final = ("/mcp", "/experimental/resource", "/provider/auth", "/vcs")


def _providers(request: ViewRequest) -> tuple[list[Json], Json]:
    """The providers with their models, and the first model of each. No keys, no addresses."""
    found: list[Json] = [
        {
            "id": id_,
            "name": id_,
            "source": "config",
            "env": [],
            "options": {},
            "models": {
                model_id: _model(id_, model_id, model) for model_id, model in provider.model.items()
            },
        }
        for id_, provider in request.runtime.settings.providers.items()
        if provider.model
    ]
    return found, {one["id"]: next(iter(one["models"])) for one in found}


def _model(provider_id: str, model_id: str, model: ModelConfig) -> Json:
    released = {} if model.released is None else {"release_date": model.released.isoformat()}
    return {
        "id": model_id,
        "providerID": provider_id,
        "name": model.name or model_id,
        "status": "active",
        "limit": {"context": model.context, "output": model.output},
        "cost": {"input": model.cost.input, "output": model.cost.output},
        "variants": {id_: {} for id_ in model.variant},
        "options": {},
        **released,
    }


async def _config_providers(request: ViewRequest) -> Response:
    providers, default = _providers(request)
    return json_answer({"providers": providers, "default": default})


async def _all_providers(request: ViewRequest) -> Response:
    providers, default = _providers(request)
    connected = [one["id"] for one in providers]
    return json_answer({"all": providers, "default": default, "connected": connected})


async def _agents(request: ViewRequest) -> Response:
    agents = []
    for id_, agent in request.runtime.settings.agents.items():
        viewed: Json = {"name": id_, "mode": agent.mode, "hidden": agent.hidden, "native": False}
        if agent.description is not None:
            viewed["description"] = agent.description
        if (model := agent.model_ref()) is not None:
            viewed["model"] = {"providerID": model.provider_id, "modelID": model.id}
        agents.append(viewed)
    return json_answer(agents)


async def _config(request: ViewRequest) -> Response:
    nowhere = SessionInfo(
        id="ses_none",
        project_id="",
        time=SessionTime(created=0, updated=0),
        title="",
        location=LocationRef(directory="/"),
    )
    model = request.runtime.settings.with_defaults(nowhere).model
    chosen = {} if model is None else {"model": f"{model.provider_id}/{model.id}"}
    return json_answer({"share": "disabled", **chosen})


async def _path(request: ViewRequest) -> Response:
    directory = own_directory(request)
    names = ("home", "state", "config", "worktree", "directory")
    return json_answer(dict.fromkeys(names, directory))


async def _project(request: ViewRequest) -> Response:
    directory = own_directory(request)
    return json_answer({"id": project_id(directory), "worktree": directory, "time": {"created": 0}})


async def _capabilities(_request: ViewRequest) -> Response:
    return json_answer({"backgroundSubagents": False})


async def _console(_request: ViewRequest) -> Response:
    return json_answer({"consoleManagedProviders": [], "switchableOrgCount": 0})


async def _commands(request: ViewRequest) -> Response:
    """The configured commands. A name that is not listed here goes to the model as it was typed."""
    commands = [
        {
            "name": command.name,
            "description": command.description or "",
            "template": "",
            "hints": [],
        }
        for command in request.runtime.settings.list_commands(())
    ]
    return json_answer(commands)


async def _empty_list(_request: ViewRequest) -> Response:
    return json_answer([])


async def _empty_object(_request: ViewRequest) -> Response:
    return json_answer({})


OPERATIONS: Final[tuple[AnyOperation, ...]] = (
    view_operation("GET", "/config/providers", _config_providers, scope="session:read"),
    view_operation("GET", "/config", _config, scope="session:read"),
    view_operation("GET", "/provider", _all_providers, scope="session:read"),
    view_operation("GET", "/agent", _agents, scope="session:read"),
    view_operation("GET", "/path", _path, scope="session:read"),
    view_operation("GET", "/project/current", _project, scope="session:read"),
    view_operation("GET", "/experimental/capabilities", _capabilities, scope="session:read"),
    view_operation("GET", "/experimental/console", _console, scope="session:read"),
    view_operation("GET", "/command", _commands, scope="session:read"),
    *(view_operation("GET", path, _empty_list, scope="session:read") for path in _EMPTY_LISTS),
    *(view_operation("GET", path, _empty_object, scope="session:read") for path in _EMPTY_OBJECTS),
)
