"""Serves operations: the checks in their one order, then the operation, then every error in one way."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import START
from fairlead_gateway.http.access_log import Observed, name_route
from fairlead_gateway.http.answers import failure, refuse
from fairlead_gateway.http.incoming import body_of, query_of, session_id_of, tenant_of
from fairlead_gateway.http.operation import AnyOperation, Call, Found
from fairlead_gateway.reads.read_model import ReadsUnavailable
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import Refused, ServiceUnavailable, SessionNotFound, WireError
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address

CLIENT_CLOSED = 499


def routes(runtime: Runtime, operations: Sequence[AnyOperation]) -> list[Route]:
    """One route per path, in the order of the table."""
    by_path: dict[str, dict[str, AnyOperation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    return [_route(runtime, path, methods) for path, methods in by_path.items()]


def dress(app: Starlette) -> Starlette:
    """Give an application our errors for unknown routes and our log and metrics for requests."""
    app.router.redirect_slashes = False
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_middleware(Observed)
    return app


async def perform(runtime: Runtime, operation: AnyOperation, request: Request) -> Response:
    """The checks of an operation in their contractual order, then the operation itself."""
    tenant = tenant_of(request)
    bytes_max = runtime.settings.body_bytes_max
    found = None
    if operation.in_session:
        named = Found(Address(tenant, session_id_of(request)), None)
        found = named if operation.commands else await _find(runtime, named.at)
    try:
        query = query_of(request, operation.query)
        body = await body_of(request, operation.body, bytes_max=bytes_max)
    except Refused:
        # A session that does not exist is said before anything about the request.
        if found is not None and operation.commands:
            await _find(runtime, found.at)
        raise
    return await operation.respond(Call(request, runtime, tenant, query, body, found))


def _route(runtime: Runtime, path: str, operations: dict[str, AnyOperation]) -> Route:
    async def endpoint(request: Request) -> Response:
        name_route(request.scope, path)
        try:
            return await perform(runtime, operations[request.method], request)
        except HTTPException:
            raise
        except ClientDisconnect:
            return Response(status_code=CLIENT_CLOSED)
        except Exception as error:  # noqa: BLE001 - the process edge: every error becomes an answer
            return refuse(error)

    route = Route(path, endpoint, methods=list(operations))
    # Starlette adds HEAD to GET, and a HEAD of a stream would never end.
    route.methods = set(operations)
    return route


async def _find(runtime: Runtime, at: Address) -> Found:
    """The session a path names: from the log, or from the read models when it cannot be read."""
    try:
        head = await runtime.medium().log.head(at)
    except (ServiceUnavailable, LogError, RecordError) as away:
        return await _projected(runtime, at, away)
    if head == START:
        raise SessionNotFound(at.session_id)
    return Found(at, head)


async def _projected(runtime: Runtime, at: Address, away: Exception) -> Found:
    try:
        progress = await runtime.read.progress(at)
    except ReadsUnavailable:
        raise away from None
    if progress is None:
        # Not projected is not the same as not existing, and only the log could tell.
        raise away
    return Found(at, None, away)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), error
    match error.status_code:
        case 404:
            message = f"No such route: {request.url.path}"
        case 405:
            message = f"{request.method} is not allowed on {request.url.path}"
        case status:
            return PlainTextResponse(error.detail, status_code=status)
    body = WireError(tag="InvalidRequestError", message=message)
    return failure(error.status_code, body, dict(error.headers or {}))
