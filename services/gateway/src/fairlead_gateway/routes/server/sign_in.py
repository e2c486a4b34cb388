"""Sign-in of browsers: a key or a ticket becomes a sealed cookie, and sign-out removes it."""

from typing import Annotated, Final

from pydantic import StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from fairlead_gateway.console.sealed_cookie import COOKIE_LENGTH_MAX, set_cookie
from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.caller import require_own_page
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.routes.server.principal import PrincipalAnswer, describe_principal
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import Forbidden, InvalidRequest, Unauthorized
from fairlead_schema.identity.principal import Principal
from fairlead_schema.model import InputModel, Model
from fairlead_service.audit import audit
from fairlead_service.identity.credentials import CREDENTIAL_LENGTH_MAX
from fairlead_service.ids import now_ms

AGE_MS_MAX: Final = 7 * 24 * 3600 * 1000
"""How long a browser stays signed in with a key that has no end of its own."""


class SignInMethods(Model):
    """How a person can sign in here."""

    open: bool
    """Nobody has to: this server asks no caller on its own machine."""
    key: bool
    provider: str | None = None
    """Where the sign-in with the identity provider begins."""


class MethodsAnswer(Model):
    data: SignInMethods


Secret = Annotated[str, StringConstraints(min_length=1, max_length=CREDENTIAL_LENGTH_MAX)]


class SignInBody(InputModel):
    key: Secret | None = None
    ticket: Secret | None = None
    """From the link that `fairlead up` prints. It counts once."""


async def _methods(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    auth = request.runtime.settings.auth
    methods = SignInMethods(
        open=auth.mode == "open",
        key=auth.keys_file is not None,
        provider="/login/oidc" if auth.client_id is not None else None,
    )
    return answer(MethodsAnswer(data=methods))


async def _sign_in(request: ApiRequest[EmptyInput, SignInBody]) -> Response:
    runtime, http = request.runtime, request.http
    require_own_page(http)
    try:
        credential = _credential(runtime, request.body)
        principal = await runtime.authenticator.authenticate(lambda: credential)
    except Unauthorized:
        runtime.failed_logins.take(None if http.client is None else http.client.host)
        raise
    signed_in = answer(PrincipalAnswer(data=describe_principal(principal)))
    signed_in.headers.append("set-cookie", start_session(runtime, http, principal, credential))
    return signed_in


def start_session(runtime: Runtime, http: Request, principal: Principal, credential: str) -> str:
    """The header that signs a browser in with a credential. Raises InvalidRequest if it is too long."""
    now = now_ms()
    until = min(now + AGE_MS_MAX, principal.expires_at or now + AGE_MS_MAX)
    sealed = runtime.sealer.seal("cookie", credential, until=until)
    if len(sealed) > COOKIE_LENGTH_MAX:
        raise InvalidRequest("The token is too long for a cookie: ask for one with fewer claims")
    audit("sign-in", "allowed", principal=principal.name, tenant=principal.tenant)
    return set_cookie(http.headers.get("host", ""), sealed, max_age_s=max(1, (until - now) // 1000))


def _credential(runtime: Runtime, body: SignInBody) -> str:
    if body.key is not None:
        return body.key.strip()
    if body.ticket is None:
        raise InvalidRequest("Send a key or a ticket", kind="Body", field="key")
    now = now_ms()
    ticket = runtime.sealer.open("ticket", body.ticket, now_ms=now)
    runtime.used_tickets.use(ticket, now_ms=now)
    return ticket.text


async def _sign_out(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    require_own_page(request.http)
    signed_out = empty_answer()
    host = request.http.headers.get("host", "")
    signed_out.headers.append("set-cookie", set_cookie(host, "", max_age_s=0))
    return signed_out


METHODS = Operation(
    id="sign-in.methods",
    method="GET",
    path="/api/sign-in",
    scope=None,
    summary="How a person can sign in with a browser.",
    respond=_methods,
    answer=MethodsAnswer,
)

SIGN_IN = Operation(
    id="sign-in.start",
    method="POST",
    path="/api/sign-in",
    scope=None,
    summary="Sign a browser in: the answer sets a sealed cookie for the own pages.",
    respond=_sign_in,
    body=SignInBody,
    answer=PrincipalAnswer,
    errors=(Unauthorized, Forbidden, InvalidRequest),
)

SIGN_OUT = Operation(
    id="sign-in.end",
    method="DELETE",
    path="/api/sign-in",
    scope=None,
    summary="Sign a browser out: the answer removes its cookie.",
    respond=_sign_out,
    answer=None,
    status=204,
    errors=(Forbidden,),
)
