"""Dispatches requests: runs the checks of an operation in order, calls it, answers its errors."""

from collections.abc import Sequence

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairlead_gateway.http.access_log import AccessLog, principal_of, set_principal, set_route
from fairlead_gateway.http.answers import error_answer, refuse
from fairlead_gateway.http.caller import authenticate, require_scope
from fairlead_gateway.http.operation import AnyOperation, ApiRequest, TargetSession
from fairlead_gateway.http.origin_guard import OriginGuard
from fairlead_gateway.http.origin_rules import OriginRules
from fairlead_gateway.http.request_parser import (
    EmptyInput,
    check_content_type,
    parse_body,
    query_of,
    read_body,
    session_id_of,
)
from fairlead_gateway.http.target_session import find_session
from fairlead_gateway.http.trace_requests import TraceRequests
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import Forbidden, LimitReached, Refused, Unauthorized, WireError
from fairlead_schema.identity.principal import Principal
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_service.audit import audit
from fairlead_service.logs import add_fields
from fairlead_service.traces.tracer import is_tracing

CLIENT_CLOSED = 499
# The caller of an operation that anybody may call.
NOBODY = Principal("service:nobody", DEFAULT_TENANT, frozenset())


def build_routes(runtime: Runtime, operations: Sequence[AnyOperation]) -> list[Route]:
    """One route per path, in the order of the operations."""
    by_path: dict[str, dict[str, AnyOperation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    return [_route(runtime, path, methods) for path, methods in by_path.items()]


def guard_and_log(app: Starlette, rules: OriginRules) -> Starlette:
    """Refuse foreign web pages, answer unknown routes with our error body, log every request."""
    app.router.redirect_slashes = False
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_middleware(OriginGuard, rules=rules)
    app.add_middleware(AccessLog)
    if is_tracing():
        app.add_middleware(TraceRequests)
    return app


async def dispatch(runtime: Runtime, operation: AnyOperation, http: Request) -> Response:
    """Run the checks of an operation in the order of the contract, then the operation."""
    check_content_type(http, operation.takes)
    principal = await _admit_caller(runtime, operation, http)
    target = None
    if operation.in_session:
        at = Address(principal.tenant, session_id_of(http))
        add_fields(session_id=at.session_id)
        target = TargetSession(at, None)
        if not operation.commands:
            target = await find_session(runtime, at, stored=operation.serves_stored)
    try:
        query = query_of(http, operation.query)
        body = await _body_of(runtime, operation, http, principal)
    except Refused:
        # An unknown session is refused before an invalid query or body.
        if target is not None and operation.commands:
            await find_session(runtime, target.at)
        raise
    return await operation.respond(ApiRequest(http, runtime, principal, query, body, target))


async def _admit_caller(runtime: Runtime, operation: AnyOperation, http: Request) -> Principal:
    """The caller, if it may call the operation now. Raises Unauthorized, Forbidden, RateLimited."""
    if operation.scope is None:
        return NOBODY
    try:
        principal = await authenticate(runtime, http)
    except Unauthorized:
        runtime.failed_logins.take(None if http.client is None else http.client.host)
        raise
    set_principal(http.scope, principal)
    # A refused request counts too: a caller without the scope could ask for ever.
    runtime.limits.take_request(principal.name)
    require_scope(principal, operation.scope)
    return principal


async def _body_of(
    runtime: Runtime, operation: AnyOperation, http: Request, principal: Principal
) -> BaseModel:
    if operation.body is EmptyInput:
        return EmptyInput()
    settings = runtime.settings
    runtime.limits.check_bytes(principal.name)
    body = await read_body(
        http, bytes_max=settings.body_bytes_max, timeout_s=settings.body_timeout_s
    )
    runtime.limits.take_bytes(principal.name, len(body))
    if operation.may_lack_body:
        body = body or b"{}"
    parsed: BaseModel = parse_body(body, operation.body)
    return parsed


def _route(runtime: Runtime, path: str, operations: dict[str, AnyOperation]) -> Route:
    async def endpoint(request: Request) -> Response:
        set_route(request.scope, path)
        operation = operations.get(request.method)
        if operation is None:
            raise HTTPException(405, headers={"allow": ", ".join(sorted(operations))})
        try:
            return await dispatch(runtime, operation, request)
        except HTTPException:
            raise
        except ClientDisconnect:
            return Response(status_code=CLIENT_CLOSED)
        except Exception as error:  # noqa: BLE001 - the process edge: every error becomes an answer
            _audit_refusal(request, operation, error)
            return refuse(error, request=f"{request.method} {request.url.path}")

    # Only the path of a file may hold slashes.
    route = Route(path.replace("{path}", "{path:path}"), endpoint)
    # The route takes every method: `DELETE /api/session/active` must not mean a session `active`.
    route.methods = None
    return route


def _audit_refusal(request: Request, operation: AnyOperation, error: Exception) -> None:
    if not isinstance(error, Unauthorized | Forbidden | LimitReached):
        return
    principal = principal_of(request.scope)
    audit(
        operation.id,
        "refused",
        principal=None if principal is None else principal.name,
        tenant=None if principal is None else principal.tenant,
        resource=request.url.path,
        reason=str(error),
    )


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), error
    match error.status_code:
        case 404:
            message = f"No such route: {request.url.path}"
        case 405:
            message = f"{request.method} is not allowed on {request.url.path}"
        case status:
            return PlainTextResponse(error.detail, status_code=status, headers=error.headers)
    body = WireError(tag="InvalidRequestError", message=message)
    return error_answer(error.status_code, body, dict(error.headers or {}))
