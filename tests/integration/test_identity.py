"""Identity on a whole stack: tenants apart, keys that come and go, callers in the log, hostile clients."""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_schema.errors import Unauthorized
from fairlead_schema.identity.scopes import SCOPES
from fairlead_service.identity.key_file import add_key, revoke_key
from fairlead_service.identity.keys import mint_key
from fairlead_testing.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

GUARD_S = 60


def add(up: Stack, *roles: str, tenant: str = "default") -> str:
    key, entry = mint_key(roles, tenant=tenant)
    add_key(up.up.state.keys, entry)
    return key


async def call(up: Stack, method: str, path: str, key: str, **options: object) -> httpx.Response:
    """Call until the gateway has read the keys file again, which takes a second at most."""
    headers = {"authorization": f"Bearer {key}"}
    async with asyncio.timeout(GUARD_S):
        while True:
            answer = await up.http.request(method, path, headers=headers, **options)  # type: ignore[arg-type]
            if answer.status_code != Unauthorized.status:
                return answer
            await asyncio.sleep(0.1)


async def test_tenants_see_nothing_of_each_other(up: Stack) -> None:
    """Cross-tenant ids on a real stack: 404, and the log does not change."""
    session = await up.client.create()
    await up.client.prompt(session.id, "Say hello")
    before = await up.wait_until_rested(session.id)
    stranger = add(up, "admin", tenant="acme")
    path = f"/api/session/{session.id}"
    requests = [
        ("GET", path, None),
        ("GET", f"{path}/history", None),
        ("GET", f"{path}/event", None),
        ("GET", f"{path}/message", None),
        ("GET", f"{path}/explain", None),
        ("POST", f"{path}/prompt", {"prompt": {"text": "mine"}}),
        ("POST", f"{path}/interrupt", None),
        ("POST", f"{path}/move", {"location": {"directory": "/"}}),
        ("POST", f"{path}/budget", {"cost": 0.0}),
        ("DELETE", path, None),
        ("DELETE", f"{path}?purge=true", None),
    ]

    statuses = {
        f"{method} {url}": (await call(up, method, url, stranger, json=body)).status_code
        for method, url, body in requests
    }
    listed = (await call(up, "GET", "/api/session", stranger)).json()["data"]

    assert set(statuses.values()) == {404}, statuses
    assert session.id not in {item["id"] for item in listed}
    assert await up.events(session.id) == before


async def test_the_log_says_who_caused_a_commit(up: Stack) -> None:
    key = add(up, "user")
    name = f"key:{key.split('_')[1]}"
    created = (await call(up, "POST", "/api/session", key, json={})).json()["data"]["id"]
    prompt = {"prompt": {"text": "Say hello"}}
    await call(up, "POST", f"/api/session/{created}/prompt", key, json=prompt)

    events = await up.wait_until_rested(created)
    history = (await up.http.get(f"/api/session/{created}/history")).json()["data"]

    callers = {event.event.type: event.by for event in events}
    assert (callers["session.created"], callers["prompt.admitted"]) == (name, name)
    assert callers["step.ended"] is None, "the runner's own work has no caller"
    assert {
        item["metadata"]["by"] for item in history if item["type"].endswith("prompt.admitted")
    } == {name}


async def test_a_key_stops_counting_when_it_is_revoked(up: Stack) -> None:
    key = add(up, "viewer")
    assert (await call(up, "GET", "/api/session", key)).status_code == 200

    revoke_key(up.up.state.keys, key.split("_")[1], at=datetime.now(UTC))

    headers = {"authorization": f"Bearer {key}"}
    async with asyncio.timeout(GUARD_S):
        while (await up.http.get("/api/session", headers=headers)).status_code == 200:
            await asyncio.sleep(0.1)


async def test_a_broken_keys_file_keeps_the_old_keys_in_force(up: Stack) -> None:
    keys = up.up.state.keys
    good = keys.read_text()
    try:
        keys.write_text(good.replace("admin", "emperor"))
        async with asyncio.timeout(GUARD_S):
            while "its old content stays in force" not in up.up.log_path("gateway").read_text():
                assert (await up.http.get("/api/session")).status_code == 200
                await asyncio.sleep(0.1)
        assert (await up.http.get("/api/session")).status_code == 200
    finally:
        keys.write_text(good)


async def test_operators_have_a_port_of_their_own(up: Stack) -> None:
    """B14."""
    async with httpx.AsyncClient(base_url=up.up.ops, trust_env=False) as ops:
        own = [(await ops.get(path)).status_code for path in ("/healthz", "/readyz", "/metrics")]
        api = await ops.get("/api/session")
    public = [
        (await up.http.get(path)).status_code
        for path in ("/healthz", "/readyz", "/metrics", "/asyncapi.json")
    ]

    assert own == [200, 200, 200]
    assert api.status_code == 404
    assert public == [404, 404, 404, 404]


@pytest.mark.parametrize(
    "head",
    [
        b"GET /api/session HTTP/1.1\r\nhost: evil.example\r\n\r\n",
        b"GET /api/session HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: https://evil.example\r\n\r\n",
        b"GET /api/session HTTP/1.0\r\n\r\n",
        b"POST /api/session HTTP/1.1\r\nhost: 127.0.0.1\r\nsec-fetch-site: cross-site\r\n\r\n",
    ],
    ids=["rebound", "foreign page", "no host", "cross site"],
)
async def test_raw_requests_of_web_pages_are_refused(up: Stack, head: bytes) -> None:
    """B1, as the bytes that a browser sends."""
    reader, writer = await _connect(up)
    writer.write(head)
    async with asyncio.timeout(GUARD_S):
        status = await reader.readline()
    writer.close()

    assert b" 403 " in status


async def test_an_oversize_head_is_refused_by_the_gateway(up: Stack) -> None:
    reader, writer = await _connect(up)
    writer.write(
        b"GET /api/health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"a" * 40_000 + b"\r\n\r\n"
    )
    async with asyncio.timeout(GUARD_S):
        status = await reader.readline()
    writer.close()

    assert b" 431 " in status


async def _connect(up: Stack) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(up.up.http)
    return await asyncio.open_connection(address.hostname, address.port)


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"FAIRLEAD_AUTH_MODE": "open", "FAIRLEAD_GATEWAY_HOST": "0.0.0.0"}, "loopback only"),  # noqa: S104
        ({}, "nobody could authenticate"),
        ({"FAIRLEAD_AUTH_KEYS_FILE": "/nowhere/keys.json"}, "/nowhere/keys.json"),
    ],
    ids=["open to others", "nothing configured", "no keys file"],
)
async def test_a_gateway_without_authentication_says_what_to_configure(
    variables: dict[str, str], reason: str, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "fairlead_gateway",
        cwd=tmp_path,
        env={**os.environ, "FAIRLEAD_GATEWAY_PORT": str(free_port()), **variables},
        stderr=asyncio.subprocess.PIPE,
    )
    _, output = await asyncio.wait_for(process.communicate(), GUARD_S)

    assert process.returncode == 1
    assert reason in output.decode()
    assert "Traceback" not in output.decode()


async def test_scopes_hold_on_a_whole_stack(up: Stack) -> None:
    viewer = add(up, "viewer")

    refused = await call(up, "POST", "/api/session", viewer, json={})

    assert refused.status_code == 403
    assert "session:write" in refused.json()["message"]
    assert "session:write" in SCOPES
