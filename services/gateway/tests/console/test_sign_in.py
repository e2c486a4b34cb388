"""Sign-in of browsers: a key becomes a sealed cookie, and the cookie alone changes nothing."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from fairlead_eventlog.connection import EventLog
from fairlead_gateway.console.assets import console_routes
from fairlead_gateway.console.provider_sign_in import safe_next
from fairlead_gateway.console.sealed_cookie import Sealer, cookie_name, new_cookie_key
from fairlead_gateway.http import dispatch
from fairlead_gateway.http.principal_limits import PrincipalLimits
from fairlead_gateway.routes import OPERATIONS
from fairlead_gateway.runtime import Runtime
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.errors import Unauthorized
from fairlead_service.config.auth import AuthConfig
from fairlead_service.config.configuration import ConfigError
from fairlead_service.identity.authenticator import build_authenticator
from fairlead_service.identity.key_file import add_key, revoke_key
from fairlead_service.identity.keys import mint_key
from fairlead_service.ids import now_ms
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import FakeIngest

ORIGIN = "http://127.0.0.1:8420"
OWN_PAGE = {"x-fairlead": "1", "origin": ORIGIN, "content-type": "application/json"}


@pytest.fixture
def key(tmp_path: Path) -> str:
    key, entry = mint_key(["user"], name="a person")
    add_key(tmp_path / "keys.json", entry)
    return key


@pytest.fixture
def settings(tmp_path: Path, key: str) -> GatewaySettings:
    assert key
    return GatewaySettings(auth=AuthConfig(keys_file=str(tmp_path / "keys.json")), directory="/srv")


@pytest.fixture
def runtime(
    monkeypatch: pytest.MonkeyPatch,
    settings: GatewaySettings,
    eventlog: EventLog,
    read: MemoryReadModel,
) -> Runtime:
    monkeypatch.setattr("fairlead_service.identity.watched_file.CHECK_INTERVAL_S", 0)
    limits = PrincipalLimits(settings.limits)
    return Runtime(settings, lambda: eventlog, read, build_authenticator(settings.auth), limits)


@pytest.fixture
def app(runtime: Runtime, openapi_route: Route) -> Starlette:
    routes = [
        *dispatch.build_routes(runtime, OPERATIONS),
        openapi_route,
        *console_routes(),
    ]
    return dispatch.guard_and_log(Starlette(routes=routes), runtime.settings.origin_rules)


@pytest.fixture
async def client(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
        yield client


async def _sign_in(client: httpx.AsyncClient, key: str) -> httpx.Response:
    return await client.post("/api/sign-in", json={"key": key}, headers=OWN_PAGE)


async def test_a_key_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(
    client: httpx.AsyncClient, key: str
) -> None:
    answer = await _sign_in(client, key)
    cookie = answer.headers["set-cookie"]
    who = await client.get("/api/principal")

    assert answer.status_code == 200
    assert answer.json()["data"]["scopes"] == ["session:read", "session:write", "ask:reply"]
    assert cookie.startswith("fairlead-8420=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert key not in cookie
    assert who.json()["data"]["name"].startswith("key:")


async def test_a_change_by_cookie_needs_the_header_of_an_own_page(
    client: httpx.AsyncClient, key: str, ingest: FakeIngest
) -> None:
    ingest.serve("session.interrupt", {"data": {"sessionID": "ses_1", "seq": 1}})
    await _sign_in(client, key)

    path = "/api/session/ses_1/interrupt"
    bare = await client.post(path, headers={"origin": ORIGIN, "content-type": "application/json"})
    without_origin = await client.post(path, headers={"x-fairlead": "1"})

    assert (bare.status_code, without_origin.status_code) == (403, 403)
    assert "X-Fairlead" in bare.json()["message"]
    assert ingest.commands == []


async def test_a_wrong_key_gives_no_cookie(client: httpx.AsyncClient) -> None:
    answer = await _sign_in(client, "flk_0123_nothing")

    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


async def test_a_form_of_another_page_cannot_sign_anybody_in(
    client: httpx.AsyncClient, key: str
) -> None:
    """A page could otherwise sign a person in as somebody else, and read along."""
    answer = await client.post("/api/sign-in", json={"key": key})

    assert answer.status_code == 403


async def test_a_revoked_key_ends_its_cookies(
    client: httpx.AsyncClient, key: str, tmp_path: Path
) -> None:
    await _sign_in(client, key)

    revoke_key(tmp_path / "keys.json", key.split("_")[1], at=datetime.now(UTC))
    answer = await client.get("/api/principal")

    assert answer.status_code == 401


async def test_sign_out_removes_the_cookie(client: httpx.AsyncClient, key: str) -> None:
    await _sign_in(client, key)

    answer = await client.delete("/api/sign-in", headers=OWN_PAGE)
    who = await client.get("/api/principal")

    assert answer.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert who.status_code == 401


async def test_a_ticket_signs_in_once(
    client: httpx.AsyncClient, key: str, runtime: Runtime
) -> None:
    ticket = runtime.sealer.seal("ticket", key, until=now_ms() + 60_000)

    first = await client.post("/api/sign-in", json={"ticket": ticket}, headers=OWN_PAGE)
    second = await client.post("/api/sign-in", json={"ticket": ticket}, headers=OWN_PAGE)

    assert (first.status_code, second.status_code) == (200, 401)
    assert "used already" in second.json()["message"]


async def test_an_old_ticket_and_a_ticket_in_place_of_a_cookie_count_for_nothing(
    client: httpx.AsyncClient, key: str, runtime: Runtime
) -> None:
    old = runtime.sealer.seal("ticket", key, until=now_ms() - 1)
    ticket = runtime.sealer.seal("ticket", key, until=now_ms() + 60_000)

    late = await client.post("/api/sign-in", json={"ticket": old}, headers=OWN_PAGE)
    swapped = await client.get("/api/principal", headers={"cookie": f"fairlead-8420={ticket}"})

    assert (late.status_code, swapped.status_code) == (401, 401)


async def test_a_damaged_cookie_asks_for_a_new_sign_in(
    client: httpx.AsyncClient, key: str, runtime: Runtime
) -> None:
    sealed = runtime.sealer.seal("cookie", key, until=now_ms() + 60_000)
    for damaged in (sealed[:-4] + "AAAA", "x", "é", "A" * 20_000):
        headers = {b"cookie": f"fairlead-8420={damaged}".encode()}
        answer = await client.get("/api/principal", headers=headers)

        assert answer.status_code == 401
        assert "sign in again" in answer.json()["message"]


def test_every_gateway_with_the_same_keys_opens_a_cookie_and_old_keys_open_too(
    tmp_path: Path,
) -> None:
    old, new = new_cookie_key(), new_cookie_key()
    (tmp_path / "old").write_text(old)
    (tmp_path / "both").write_text(f"{new}\n{old}\n")
    (tmp_path / "new").write_text(new)

    sealed = Sealer.load(tmp_path / "old").seal("cookie", "secret", until=2_000)

    assert Sealer.load(tmp_path / "both").open("cookie", sealed, now_ms=1_000).text == "secret"
    with pytest.raises(Unauthorized):
        Sealer.load(tmp_path / "new").open("cookie", sealed, now_ms=1_000)
    with pytest.raises(Unauthorized):
        Sealer.load(tmp_path / "old").open("cookie", sealed, now_ms=2_000)


@pytest.mark.parametrize("text", ["", "not base64!", "YWJj"])
def test_a_file_without_a_usable_key_says_what_to_write(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys").write_text(text)

    with pytest.raises(ConfigError, match="32 random bytes"):
        Sealer.load(tmp_path / "keys")


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1:8420", "fairlead-8420"),
        ("localhost", "fairlead-80"),
        ("[::1]:9000", "fairlead-9000"),
        ("console.example", "__Host-fairlead"),
        ("console.example:8443", "__Host-fairlead"),
    ],
)
def test_the_cookie_is_bound_to_its_host_and_local_ones_to_their_port(host: str, name: str) -> None:
    assert cookie_name(host) == name


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        (None, "/"),
        ("/asks", "/asks"),
        ("/s/ses_1", "/s/ses_1"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/s/a//evil", "/"),
        ("/api/session", "/"),
    ],
)
def test_nobody_is_sent_to_another_site_after_the_sign_in(wanted: str | None, there: str) -> None:
    assert safe_next(wanted) == there


async def test_a_link_of_another_site_opens_the_page_but_reads_nothing(
    client: httpx.AsyncClient,
) -> None:
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    page = await client.get("/s/ses_1", headers={**visit, "sec-fetch-dest": "document"})
    framed = await client.get("/s/ses_1", headers={**visit, "sec-fetch-dest": "iframe"})
    api = await client.get("/api/principal", headers={**visit, "sec-fetch-dest": "document"})

    assert (page.status_code, framed.status_code, api.status_code) == (200, 403, 403)
