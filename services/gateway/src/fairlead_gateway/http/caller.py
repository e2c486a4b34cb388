"""The caller of a request: who it is, and whether it may call the operation."""

import asyncio
from collections.abc import Callable

from starlette.requests import Request

from fairlead_gateway.console.sealed_cookie import cookie_name
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import Forbidden, Unauthorized
from fairlead_schema.identity.principal import Principal
from fairlead_schema.identity.scopes import Scope
from fairlead_service.identity.credentials import credential_of
from fairlead_service.ids import now_ms

QUERY_TOKEN = "token"  # noqa: S105 - the name of a parameter
OWN_PAGE = "x-fairlead"


async def authenticate(runtime: Runtime, request: Request) -> Principal:
    """The principal of a request. Raises Unauthorized."""
    return await runtime.authenticator.authenticate(_credential_finder(runtime, request))


def require_scope(principal: Principal, scope: Scope) -> None:
    """Refuse a principal without a scope. Raises Forbidden."""
    if not principal.may(scope):
        raise Forbidden(f"The scope {scope} is missing: ask for a token that has it")


def require_own_page(http: Request) -> None:
    """Refuse what no page of this server sent: a form cannot send this header. Raises Forbidden."""
    if http.headers.get(OWN_PAGE) != "1" or "origin" not in http.headers:
        raise Forbidden("A browser sends `X-Fairlead: 1` and its Origin from a page of this server")


async def watch_credentials(runtime: Runtime, request: Request, principal: Principal) -> None:
    """Wait until the credentials of an open stream end, and raise Unauthorized then.

    A revoked key ends its streams too, at the next check.
    """
    while True:
        await asyncio.sleep(_check_pause_s(runtime, principal))
        if principal.expires_at is not None and now_ms() >= principal.expires_at:
            raise Unauthorized("The credentials expired: open the stream again with new ones")
        await authenticate(runtime, request)


def _check_pause_s(runtime: Runtime, principal: Principal) -> float:
    pause_s = runtime.settings.heartbeat_s
    if principal.expires_at is None:
        return pause_s
    return max(0.0, min(pause_s, (principal.expires_at - now_ms()) / 1000))


def _credential_finder(runtime: Runtime, request: Request) -> Callable[[], str]:
    def find() -> str:
        token = request.query_params.get(QUERY_TOKEN) if runtime.settings.query_tokens else None
        headers = request.headers.getlist("authorization")
        if len(headers) > 1:
            # A proxy in front may have looked at another one than this server would.
            raise Unauthorized("The request has several Authorization headers: send one")
        sealed = request.cookies.get(cookie_name(request.headers.get("host", "")))
        if headers or token or not sealed:
            return credential_of(headers[0] if headers else None, token)
        if request.method != "GET":
            require_own_page(request)
        return runtime.sealer.open("cookie", sealed, now_ms=now_ms()).text

    return find
