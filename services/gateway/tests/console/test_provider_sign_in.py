"""Sign-in at an identity provider: the code flow with PKCE against a real token endpoint."""

import base64
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_gateway.console.assets import console_routes
from fairlead_gateway.console.provider_sign_in import provider_routes
from fairlead_gateway.http import dispatch
from fairlead_gateway.http.principal_limits import PrincipalLimits
from fairlead_gateway.routes import OPERATIONS
from fairlead_gateway.runtime import Runtime
from fairlead_gateway.settings import GatewaySettings
from fairlead_service.config.auth import AuthConfig
from fairlead_service.identity.authenticator import build_authenticator
from fairlead_service.ids import now_ms
from fairlead_testing.read_model import MemoryReadModel

ORIGIN = "http://127.0.0.1:8420"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Provider:
    """An identity provider: it remembers what was asked, and answers codes with tokens."""

    address: str = ""
    challenge: str = ""
    nonce: str = ""
    posted: list[dict[str, str]] = field(default_factory=list)
    claims: dict[str, Any] = field(default_factory=dict)
    audience: str = "console"

    def token(self) -> str:
        now = now_ms() // 1000
        claims = {
            "iss": "https://id.example",
            "aud": self.audience,
            "sub": "ada",
            "iat": now,
            "exp": now + 600,
            "tenant": "default",
            "roles": "user",
            "nonce": self.nonce,
            **self.claims,
        }
        return jwt.encode(claims, KEY, algorithm="RS256", headers={"kid": "k1"})

    def exchange(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.posted.append(form)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != self.challenge:
            return 400, {"error": "invalid_grant"}
        return 200, {"id_token": self.token(), "token_type": "Bearer"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    known = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            status, answer = known.exchange(form)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield known
    server.shutdown()
    server.server_close()


@pytest.fixture
def app(provider: Provider, tmp_path: Path, eventlog: EventLog, read: MemoryReadModel) -> Starlette:
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [{**jwk, "kid": "k1", "use": "sig"}]}))
    auth = AuthConfig(
        issuer="https://id.example",
        audience="console",
        jwks_file=str(tmp_path / "jwks.json"),
        client_id="console",
        authorize_url="https://id.example/authorize",
        token_url=f"{provider.address}/token",
    )
    settings = GatewaySettings(auth=auth, directory="/srv")
    limits = PrincipalLimits(settings.limits)
    runtime = Runtime(settings, lambda: eventlog, read, build_authenticator(auth), limits)
    routes = [
        *dispatch.build_routes(runtime, OPERATIONS),
        *provider_routes(runtime),
        *console_routes(),
    ]
    return dispatch.guard_and_log(Starlette(routes=routes), settings.origin_rules)


@pytest.fixture
async def client(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
        yield client


async def begin(client: httpx.AsyncClient, provider: Provider) -> dict[str, str]:
    """Begin a sign-in; what the provider is asked."""
    answer = await client.get("/login/oidc", params={"next": "/asks"})
    assert answer.status_code == 303
    asked = {
        name: values[0]
        for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()
    }
    provider.challenge, provider.nonce = asked["code_challenge"], asked["nonce"]
    return asked


async def finish(client: httpx.AsyncClient, **query: str) -> httpx.Response:
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    return await client.get(
        "/login/callback", params=query, headers={**visit, "sec-fetch-dest": "document"}
    )


async def test_a_person_comes_back_from_the_provider_signed_in(
    client: httpx.AsyncClient, provider: Provider
) -> None:
    asked = await begin(client, provider)
    answer = await finish(client, code="c0de", state=asked["state"])
    who = await client.get("/api/principal")

    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == f"{ORIGIN}/login/callback"
    assert answer.headers["location"] == "/asks"
    assert provider.posted[0]["code"] == "c0de"
    assert who.json()["data"]["name"] == "user:https://id.example/ada"
    assert who.json()["data"]["expiresAt"] > now_ms()


@pytest.mark.parametrize("case", ["state", "code", "nonce", "audience", "verifier", "no cookie"])
async def test_whatever_does_not_belong_to_the_sign_in_is_refused(
    client: httpx.AsyncClient, provider: Provider, case: str
) -> None:
    asked = await begin(client, provider)
    query = {"code": "c0de", "state": asked["state"]}
    match case:
        case "state":
            query["state"] = "another"
        case "code":
            del query["code"]
            query["error"] = "access_denied"
        case "nonce":
            provider.nonce = "another"
        case "audience":
            provider.audience = "another"
        case "verifier":
            provider.challenge = "another"
        case _:
            client.cookies.clear()

    answer = await finish(client, **query)
    who = await client.get("/api/principal")

    assert answer.headers["location"].startswith("/login#failed=")
    assert who.status_code == 401


async def test_a_failed_sign_in_cannot_be_finished_later(
    client: httpx.AsyncClient, provider: Provider
) -> None:
    asked = await begin(client, provider)
    await finish(client, error="access_denied", state=asked["state"])

    answer = await finish(client, code="c0de", state=asked["state"])

    assert answer.headers["location"].startswith("/login#failed=")


async def test_the_page_offers_the_provider(client: httpx.AsyncClient) -> None:
    methods = (await client.get("/api/sign-in")).json()["data"]

    assert methods == {"open": False, "key": False, "provider": "/login/oidc"}
