"""What all routes of the terminal client share: lenient input, plain JSON answers, one kind of operation."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

import orjson
from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import JSON
from fairlead_gateway.http.operation import AnyOperation, ApiRequest, Body, Operation, Query
from fairlead_gateway.http.request_parser import EmptyInput, Text, header_text
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.identity.scopes import Scope
from fairlead_schema.model import InputModel


class ViewQuery(InputModel):
    """The query of any route. Unknown keys are ignored, as the client expects."""

    directory: Text | None = Field(default=None, min_length=1)


Located = TypeVar("Located", bound=ViewQuery)


def json_answer(body: object, status: int = 200) -> Response:
    """A JSON answer without an envelope."""
    return Response(orjson.dumps(body), status_code=status, media_type=JSON)


def directory_of(request: ApiRequest[Located, Body]) -> str | None:
    """The directory that a request names. The query wins over the header."""
    return request.query.directory or header_text(request.http, "x-opencode-directory")


def own_directory(request: ApiRequest[Located, Body]) -> str:
    """The directory of a request, or the default of its tenant."""
    settings = request.runtime.settings
    default = settings.default_location(request.tenant) or settings.directory
    return directory_of(request) or default


def view_operation(  # noqa: PLR0913 - the fields of one route
    method: Literal["GET", "POST", "PATCH", "DELETE"],
    path: str,
    respond: Callable[[ApiRequest[Query, Any]], Awaitable[Response]],
    *,
    scope: Scope,
    query: type[Query] = ViewQuery,  # type: ignore[assignment]
    body: type[InputModel] = EmptyInput,
    commands: bool = False,
) -> AnyOperation:
    """One route of the terminal client. The OpenAPI document does not name it."""
    return Operation(
        id=f"opencode {method} {path}",
        method=method,
        path=path,
        scope=scope,
        summary="For OpenCode's terminal client.",
        respond=respond,
        query=query,
        body=body,
        answer=None,
        errors=(ServiceUnavailable,),
        may_lack_body=True,
        commands=commands,
    )
