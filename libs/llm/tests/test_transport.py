"""Reaching a provider: real sockets, real TLS, a real proxy, and one connection for many turns."""

import asyncio
import ipaddress
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.errors import InvalidTransport
from fairlead_llm.http import stream
from fairlead_llm.transport import Transport, clients
from fairlead_schema.provider.events import ProviderFailure, StepFinish
from fairlead_schema.provider.request import ModelRequest, TextPart, UserTurn

ASK = ModelRequest("m", turns=(UserTurn((TextPart("hi"),)),))
BODY = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    + f"content-length: {len(BODY)}\r\n\r\n".encode()
    + BODY
)


class Peer:
    """A server that answers every request with one short stream, and records the requests."""

    def __init__(self) -> None:
        self.url = ""
        self.connections = 0
        self.requests: list[str] = []
        self.certificates: list[object] = []
        self.alpn_protocols: list[str | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.certificates.append(writer.get_extra_info("peercert"))
        if (tls := writer.get_extra_info("ssl_object")) is not None:
            self.alpn_protocols.append(tls.selected_alpn_protocol())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                self.requests.append(lines[0])
                length = next(line for line in lines if line.lower().startswith("content-length"))
                await reader.readexactly(int(length.split(":")[1]))
                writer.write(ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serve_peer(trust: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    peer = Peer()
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=trust)
    scheme = "https" if trust else "http"
    peer.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield peer


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """A self-signed certificate of this machine, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fairlead test")])
    now = datetime.now(UTC)
    localhost = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(localhost, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = tmp_path / "both.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    return path


def tls_context(pem: Path, *, both: bool = False) -> ssl.SSLContext:
    """The TLS context of a server. With `both` it requires client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    if both:
        context.load_verify_locations(pem)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def last_event(client: httpx.AsyncClient, url: str) -> object:
    """The last event of an attempt."""
    return [event async for event in stream(client, ProviderEndpoint("openai-chat", url), ASK)][-1]


@pytest.mark.integration
async def test_turns_share_a_connection_and_equal_settings_a_client() -> None:
    async with serve_peer() as peer:
        async with clients(keepalive_max=4) as client_for:
            ends = [await last_event(client_for(Transport()), peer.url) for _ in range(3)]

            assert client_for(Transport()) is client_for(Transport())
            assert client_for(Transport()) is not client_for(Transport(verify=False))

        assert all(isinstance(end, StepFinish) for end in ends)
        assert (peer.connections, len(peer.requests)) == (1, 3)


async def test_every_client_is_closed_at_the_end() -> None:
    async with clients(keepalive_max=4) as client_for:
        opened_clients = [client_for(Transport()), client_for(Transport(verify=False))]

    assert all(client.is_closed for client in opened_clients)


@pytest.mark.integration
async def test_a_private_authority_is_trusted_only_where_it_is_named(pem: Path) -> None:
    async with serve_peer(tls_context(pem)) as peer, clients(keepalive_max=4) as client_for:
        trusted = await last_event(client_for(Transport(ca_file=str(pem))), peer.url)
        careless = await last_event(client_for(Transport(verify=False)), peer.url)
        stranger = await last_event(client_for(Transport()), peer.url)

    assert isinstance(trusted, StepFinish)
    assert isinstance(careless, StepFinish)
    assert isinstance(stranger, ProviderFailure)
    assert stranger.kind == "network"
    assert "certificate" in stranger.message.lower()


@pytest.mark.integration
async def test_a_client_certificate_is_shown(pem: Path) -> None:
    with_certificate = Transport(ca_file=str(pem), client_cert=str(pem))
    async with (
        serve_peer(tls_context(pem, both=True)) as peer,
        clients(keepalive_max=4) as client_for,
    ):
        accepted = await last_event(client_for(with_certificate), peer.url)
        refused = await last_event(client_for(Transport(ca_file=str(pem))), peer.url)

    assert isinstance(accepted, StepFinish)
    assert peer.certificates[0]
    assert isinstance(refused, ProviderFailure)


@pytest.mark.integration
async def test_a_proxy_is_asked_instead_of_the_provider() -> None:
    async with serve_peer() as proxy, clients(keepalive_max=4) as client_for:
        end = await last_event(client_for(Transport(proxy=proxy.url)), "http://provider.invalid")

    assert isinstance(end, StepFinish)
    assert proxy.requests == ["POST http://provider.invalid/v1/chat/completions HTTP/1.1"]


@pytest.mark.integration
async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """B17: only the configuration names a proxy, for providers as for every other address."""
    async with (
        serve_peer() as provider,
        serve_peer() as proxy,
        clients(keepalive_max=4) as client_for,
    ):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        end = await last_event(client_for(Transport()), provider.url)

    assert isinstance(end, StepFinish)
    assert proxy.requests == []


@pytest.mark.parametrize("name", ["missing.pem", "garbage.pem"])
async def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "garbage.pem").write_text("no certificate")
    path = str(tmp_path / name)

    async with clients(keepalive_max=4) as client_for:
        with pytest.raises(InvalidTransport, match=f"ca_file .*{name}"):
            client_for(Transport(ca_file=path))
        with pytest.raises(InvalidTransport, match=f"client_cert .*{name}"):
            client_for(Transport(client_cert=path))


async def test_a_proxy_that_cannot_be_used_does_not_show_its_password() -> None:
    async with clients(keepalive_max=4) as client_for:
        with pytest.raises(InvalidTransport) as refused:
            client_for(Transport(proxy="ftp://user:secret@proxy"))

    assert "secret" not in str(refused.value)


@pytest.mark.integration
async def test_where_http2_is_off_a_server_that_prefers_it_is_spoken_to_in_http1(
    pem: Path,
) -> None:
    context = tls_context(pem)
    context.set_alpn_protocols(["h2", "http/1.1"])

    async with serve_peer(context) as peer, clients(keepalive_max=4) as client_for:
        end = await last_event(client_for(Transport(ca_file=str(pem))), peer.url)

    assert isinstance(end, StepFinish)
    assert peer.alpn_protocols == ["http/1.1"]


async def test_http2_without_its_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h2", None)

    async with clients(keepalive_max=4) as client_for:
        with pytest.raises(InvalidTransport, match="http2"):
            client_for(Transport(http2=True))
