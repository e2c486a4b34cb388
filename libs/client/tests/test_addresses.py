"""Where servers may stand: behind a path, at IPv6, and behind certificates of a private authority."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_client import AsyncFairlead, Fairlead, NatsLogin, ServerAway, ServerUntrusted
from fairlead_client.nats_login import find_login
from fairlead_testing.certificates import make_certificates
from fairlead_testing.nats import Server
from libs.client.tests.conftest import ScriptedGateway, reply
from libs.client.tests.test_async_commands import ADMITTED, PROMPT

HTTP_AUTHORITY = "FAIRLEAD_HTTP_TLS_CA"


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@asynccontextmanager
async def serving(
    host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[ScriptedGateway]:
    """A scripted gateway at another address. Its port is that of the listener."""
    gateway = ScriptedGateway()
    server = await asyncio.start_server(gateway.serve, host, 0, ssl=tls)
    gateway.port = server.sockets[0].getsockname()[1]
    gateway.script("/api/session/ses_a/explain", reply({"data": {"code": "idle"}}))
    try:
        yield gateway
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    return make_certificates(tmp_path, "ours")[0]


@pytest.fixture
def own_tls(authority: Path) -> ssl.SSLContext:
    """What a server of our authority shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.with_name("ours.pem"), authority.with_name("ours.key"))
    return context


@pytest.mark.parametrize("ending", ["", "/", "//"])
async def test_a_gateway_may_be_behind_a_path(gateway: ScriptedGateway, ending: str) -> None:
    gateway.script(f"/fairlead{PROMPT}", ADMITTED)
    async with AsyncFairlead(f"{gateway.url}/fairlead{ending}") as fairlead:
        assert (await fairlead.prompt("ses_a", "Hi")).id == "msg_1"


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
async def test_a_gateway_may_be_at_ipv6() -> None:
    async with serving("::1") as gateway, AsyncFairlead(f"http://[::1]:{gateway.port}") as fairlead:
        assert (await fairlead.explain("ses_a"))["code"] == "idle"


async def test_no_variable_of_the_environment_sends_a_request_to_a_proxy(
    gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As everywhere in Fairlead. A request to this machine would leave it with its token."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    gateway.script(PROMPT, ADMITTED)
    async with AsyncFairlead(gateway.url, patience_s=0.0) as fairlead:
        await fairlead.prompt("ses_a", "Hi")


async def test_a_private_authority_is_named_by_the_environment_or_by_the_program(
    authority: Path, own_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that nobody named is refused at once: nothing is sent, and nothing is repeated."""
    async with serving(tls=own_tls) as gateway:
        url, trust = f"https://127.0.0.1:{gateway.port}", ssl.create_default_context()
        trust.load_verify_locations(authority)
        async with asyncio.timeout(20), AsyncFairlead(url) as untrusting:
            with pytest.raises(ServerUntrusted, match=rf"refused .*\${HTTP_AUTHORITY}"):
                await untrusting.explain("ses_a")
        assert gateway.asked == []
        async with AsyncFairlead(url, tls=trust) as fairlead:
            await fairlead.explain("ses_a")
        monkeypatch.setenv(HTTP_AUTHORITY, str(authority))
        async with AsyncFairlead(url) as fairlead:
            await fairlead.explain("ses_a")

        def explain() -> None:
            with Fairlead(url) as synchronous:
                synchronous.explain("ses_a")

        await asyncio.to_thread(explain)


def test_a_file_without_certificates_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (None, "no certificate"):
        file = tmp_path / "ca.pem"
        if content is not None:
            file.write_text(content)
        monkeypatch.setenv(HTTP_AUTHORITY, str(file))
        with pytest.raises(ServerUntrusted, match=r"no certificates in .*ca\.pem"):
            AsyncFairlead("https://127.0.0.1:1")
        with pytest.raises(ServerUntrusted, match=r"ca\.pem.*\$FAIRLEAD_NATS_TLS_CA"):
            find_login(environment={"FAIRLEAD_NATS_TLS_CA": str(file)}, state=tmp_path)


@pytest.mark.integration
async def test_nats_may_have_a_certificate_of_a_private_authority(
    authority: Path, tmp_path: Path
) -> None:
    cert, key = authority.with_name("ours.pem"), authority.with_name("ours.key")
    more = f'tls {{ cert_file: "{cert}", key_file: "{key}", ca_file: "{authority}", verify: true }}'
    server = Server(tmp_path, free_port(), more=more, jetstream=False)
    server.start()
    environment = {
        "FAIRLEAD_NATS_URL": server.url,
        "FAIRLEAD_NATS_TLS_CA": str(authority),
        "FAIRLEAD_NATS_TLS_CERT": str(cert),
        "FAIRLEAD_NATS_TLS_KEY": str(key),
    }
    trusting = find_login(environment=environment, state=tmp_path)
    plain = NatsLogin(server.url, tls=ssl.create_default_context())
    try:
        async with AsyncFairlead.over_nats(trusting, patience_s=0.0) as fairlead:
            with pytest.raises(ServerAway, match=r"nobody serves session\.get"):
                await fairlead.get("ses_a")
        async with asyncio.timeout(20), AsyncFairlead.over_nats(plain) as fairlead:
            with pytest.raises(ServerUntrusted, match=r"refused .*\$FAIRLEAD_NATS_TLS_CA"):
                await fairlead.get("ses_a")
    finally:
        server.kill()
