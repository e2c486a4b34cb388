"""HTTP/2 if configured: many turns at once over one connection, against a real server."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
from typing_extensions import override

from fairlead_llm.transport import Transport, clients
from fairlead_schema.provider.events import StepFinish
from libs.llm.tests.test_transport import BODY, Peer, last_event, pem, tls_context

__all__ = ["pem"]

HEADERS = [(":status", "200"), ("content-type", "text/event-stream")]


class Multiplexer(Peer):
    """An HTTP/2 server that answers only after it has received `streams_min` requests."""

    def __init__(self, streams_min: int) -> None:
        super().__init__()
        self._streams_min = streams_min
        self._streams: list[int] = []

    @override
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        tls = writer.get_extra_info("ssl_object")
        self.alpn_protocols.append(tls.selected_alpn_protocol())
        config = h2.config.H2Configuration(client_side=False)
        connection = h2.connection.H2Connection(config)
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(65_536):
            for event in connection.receive_data(data):
                self._handle(connection, event)
            writer.write(connection.data_to_send())
            await writer.drain()
        writer.close()

    def _handle(self, connection: h2.connection.H2Connection, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self.requests.append(dict(event.headers or ())[b":path"].decode())
        if not isinstance(event, h2.events.StreamEnded):
            return
        assert event.stream_id is not None
        self._streams.append(event.stream_id)
        if len(self._streams) < self._streams_min:
            return
        for stream_id in self._streams:
            connection.send_headers(stream_id, HEADERS)
            connection.send_data(stream_id, BODY, end_stream=True)


@asynccontextmanager
async def serve_multiplexer(
    context: ssl.SSLContext, streams_min: int
) -> AsyncIterator[Multiplexer]:
    peer = Multiplexer(streams_min)
    context.set_alpn_protocols(["h2", "http/1.1"])
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=context)
    peer.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield peer


@pytest.mark.integration
async def test_turns_at_once_share_one_connection(pem: Path) -> None:
    """The server answers after all requests arrived: over HTTP/1 the second would never arrive."""
    transport = Transport(ca_file=str(pem), http2=True)

    async with (
        serve_multiplexer(tls_context(pem), streams_min=8) as peer,
        clients(keepalive_max=1) as client_for,
        asyncio.timeout(30),
    ):
        first = asyncio.create_task(last_event(client_for(transport), peer.url))
        while not peer.connections:
            await asyncio.sleep(0.01)
        others = [
            asyncio.create_task(last_event(client_for(transport), peer.url)) for _ in range(7)
        ]
        ends = await asyncio.gather(first, *others)

    assert all(isinstance(end, StepFinish) for end in ends)
    assert (peer.connections, peer.alpn_protocols, len(peer.requests)) == (1, ["h2"], 8)
