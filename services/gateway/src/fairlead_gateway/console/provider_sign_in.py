"""Sign-in at the identity provider: the code flow of OpenID Connect with PKCE, without state here.

What the flow must remember is sealed into a cookie of its own, so that any gateway can end it.
"""

import asyncio
import base64
import hashlib
import secrets
import urllib.parse
import urllib.request
from http.client import HTTPException as HttpError
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fairlead_gateway.console.sealed_cookie import cookie_name
from fairlead_gateway.http.access_log import set_route
from fairlead_gateway.routes.server.sign_in import start_session
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import Refused, Unauthorized
from fairlead_schema.identity.principal import Principal
from fairlead_schema.model import Model
from fairlead_service.audit import audit
from fairlead_service.config.auth import AuthConfig
from fairlead_service.ids import now_ms

FLOW_S: Final = 600
EXCHANGE_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 256 * 1024
CALLBACK: Final = "/login/callback"
START: Final = "/login/oidc"


class SignInFlow(Model):
    """One sign-in that is under way in a browser."""

    state: str
    nonce: str
    verifier: str
    next: str


def provider_routes(runtime: Runtime) -> list[Route]:
    """Where a sign-in at the provider begins and ends. Without a provider there is none."""

    async def start(request: Request) -> Response:
        set_route(request.scope, START)
        return _start(runtime, request)

    async def end(request: Request) -> Response:
        set_route(request.scope, CALLBACK)
        return await _end(runtime, request)

    if runtime.settings.auth.client_id is None:
        return []
    return [Route(START, start, methods=["GET"]), Route(CALLBACK, end, methods=["GET"])]


def _start(runtime: Runtime, request: Request) -> Response:
    auth = runtime.settings.auth
    assert auth.client_id is not None, "the route exists with a client only"
    flow = SignInFlow(
        state=secrets.token_urlsafe(24),
        nonce=secrets.token_urlsafe(24),
        verifier=secrets.token_urlsafe(48),
        next=safe_next(request.query_params.get("next")),
    )
    challenge = hashlib.sha256(flow.verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": auth.client_id,
        "redirect_uri": _callback_url(request),
        "scope": auth.sign_in_scopes,
        "state": flow.state,
        "nonce": flow.nonce,
        "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    joint = "&" if "?" in (auth.authorize_url or "") else "?"
    answer = RedirectResponse(f"{auth.authorize_url}{joint}{urllib.parse.urlencode(query)}", 303)
    sealed = runtime.sealer.seal("flow", flow.model_dump_json(), until=now_ms() + FLOW_S * 1000)
    answer.headers.append("set-cookie", _flow_cookie(request, sealed, FLOW_S))
    return answer


async def _end(runtime: Runtime, request: Request) -> Response:
    try:
        flow = _open_flow(runtime, request)
        principal, credential = await _exchange(runtime, request, flow)
        signed_in = RedirectResponse(flow.next, 303)
        signed_in.headers.append(
            "set-cookie", start_session(runtime, request, principal, credential)
        )
    except Refused as error:
        audit("sign-in", "refused", reason=str(error))
        reason = urllib.parse.quote(str(error)[:300])
        signed_in = RedirectResponse(f"/login#failed={reason}", 303)
    signed_in.headers.append("set-cookie", _flow_cookie(request, "", 0))
    return signed_in


def _open_flow(runtime: Runtime, request: Request) -> SignInFlow:
    sealed = request.cookies.get(_flow_name(request))
    if not sealed:
        raise Unauthorized("The sign-in began in another browser, or long ago: begin again")
    value = runtime.sealer.open("flow", sealed, now_ms=now_ms())
    flow = SignInFlow.model_validate_json(value.text)
    if not secrets.compare_digest(request.query_params.get("state", ""), flow.state):
        raise Unauthorized("The answer belongs to another sign-in: begin again")
    return flow


async def _exchange(runtime: Runtime, request: Request, flow: SignInFlow) -> tuple[Principal, str]:
    """The caller and its token, for the code that the provider sent. Raises Unauthorized."""
    auth, code = runtime.settings.auth, request.query_params.get("code")
    if not code:
        reason = request.query_params.get("error_description") or request.query_params.get("error")
        raise Unauthorized(f"The identity provider refused: {reason or 'it sent no code'}")
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": _callback_url(request),
        "client_id": auth.client_id or "",
        "code_verifier": flow.verifier,
    }
    try:
        async with asyncio.timeout(EXCHANGE_S):
            tokens = await asyncio.to_thread(_post, auth, form)
    except (OSError, ValueError, HttpError, TimeoutError) as error:
        reason = type(error).__name__
        raise Unauthorized(f"The identity provider gave no token ({reason}): try again") from error
    credential = tokens.get(auth.sign_in_token)
    if not isinstance(credential, str):
        raise Unauthorized(f"The identity provider sent no {auth.sign_in_token}")
    principal = await runtime.authenticator.authenticate(lambda: credential)
    names_sign_in = auth.sign_in_token != "access_token"  # noqa: S105 - the name of a field
    if names_sign_in and _claim(credential, "nonce") != flow.nonce:
        raise Unauthorized("The token belongs to another sign-in: begin again")
    return principal, credential


def _post(auth: AuthConfig, form: dict[str, str]) -> dict[str, Any]:
    assert auth.token_url is not None, "the configuration asks for it"
    if auth.client_secret_file is not None:
        form["client_secret"] = Path(auth.client_secret_file).read_text().strip()
    body = urllib.parse.urlencode(form).encode()
    headers = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
    # The configuration allows https, and http on this machine, and nothing else.
    asked = urllib.request.Request(auth.token_url, body, headers)  # noqa: S310
    with urllib.request.urlopen(asked, timeout=EXCHANGE_S) as response:  # noqa: S310
        answer = from_json(response.read(ANSWER_BYTES_MAX))
    if not isinstance(answer, dict):
        raise ValueError("the answer is no object")  # noqa: TRY004 - the text is wrong
    return answer


def _claim(token: str, name: str) -> object:
    """One claim of a token that was verified already."""
    # A server of keys alone does not load the libraries of signatures.
    import jwt  # noqa: PLC0415

    return jwt.decode(token, options={"verify_signature": False}).get(name)


def safe_next(wanted: str | None) -> str:
    """Where a person goes after the sign-in: a page of this console, and nowhere else."""
    pages = ("/", "/asks", "/ops")
    is_session = wanted is not None and wanted.startswith("/s/") and wanted[3:].isascii()
    plain = (
        wanted is not None and not any(sign in wanted for sign in "\\\r\n") and "//" not in wanted
    )
    return wanted if wanted is not None and plain and (wanted in pages or is_session) else "/"


def _callback_url(request: Request) -> str:
    host = request.headers.get("host", "")
    scheme = "https" if cookie_name(host).startswith("__Host-") else "http"
    return f"{scheme}://{host}{CALLBACK}"


def _flow_name(request: Request) -> str:
    return cookie_name(request.headers.get("host", "")) + "-sign-in"


def _flow_cookie(request: Request, value: str, age_s: int) -> str:
    """The provider's redirect comes from another site, so that a strict cookie would not be sent."""
    name = _flow_name(request)
    secure = "; Secure" if name.startswith("__Host-") else ""
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age_s}{secure}"
