"""Dispatches requests: runs the checks of an operation in order, calls it, answers its errors."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairlead_gateway.http.access_log import AccessLog, set_route
from fairlead_gateway.http.answers import error_answer, refuse
from fairlead_gateway.http.operation import AnyOperation, ApiRequest, TargetSession
from fairlead_gateway.http.request_parser import body_of, query_of, session_id_of, tenant_of
from fairlead_gateway.http.target_session import find_session
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import Refused, WireError
from fairlead_schema.subjects import Address

CLIENT_CLOSED = 499


def build_routes(runtime: Runtime, operations: Sequence[AnyOperation]) -> list[Route]:
    """One route per path, in the order of the operations."""
    by_path: dict[str, dict[str, AnyOperation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    return [_route(runtime, path, methods) for path, methods in by_path.items()]


def add_errors_and_access_log(app: Starlette) -> Starlette:
    """Answer unknown routes with our error body, and log and measure every request."""
    app.router.redirect_slashes = False
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_middleware(AccessLog)
    return app


async def dispatch(runtime: Runtime, operation: AnyOperation, http: Request) -> Response:
    """Run the checks of an operation in the order of the contract, then the operation."""
    tenant = tenant_of(http)
    bytes_max = runtime.settings.body_bytes_max
    target = None
    if operation.in_session:
        at = Address(tenant, session_id_of(http))
        target = TargetSession(at, None) if operation.commands else await find_session(runtime, at)
    try:
        query = query_of(http, operation.query)
        body = await body_of(http, operation.body, bytes_max=bytes_max)
    except Refused:
        # An unknown session is refused before an invalid query or body.
        if target is not None and operation.commands:
            await find_session(runtime, target.at)
        raise
    return await operation.respond(ApiRequest(http, runtime, tenant, query, body, target))


def _route(runtime: Runtime, path: str, operations: dict[str, AnyOperation]) -> Route:
    async def endpoint(request: Request) -> Response:
        set_route(request.scope, path)
        try:
            return await dispatch(runtime, operations[request.method], request)
        except HTTPException:
            raise
        except ClientDisconnect:
            return Response(status_code=CLIENT_CLOSED)
        except Exception as error:  # noqa: BLE001 - the process edge: every error becomes an answer
            return refuse(error, request=f"{request.method} {request.url.path}")

    route = Route(path, endpoint, methods=list(operations))
    # Starlette adds HEAD to GET. A HEAD of a stream would never end.
    route.methods = set(operations)
    return route


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
    return error_answer(error.status_code, body, dict(error.headers or {}))
