"""HTTP/2 where it is asked for: many turns at once over one connection, against a real server."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest

from fairlead_llm.transport import Transport, clients
from fairlead_schema.provider.events import StepFinish
from libs.llm.tests.test_transport import BODY, Peer, asked, pem, trusting

__all__ = ["pem"]

HEADERS = [(":status", "200"), ("content-type", "text/event-stream")]


class Multiplexer(Peer):
    """Speaks HTTP/2 and answers nobody before as many have asked as it waits for."""

    def __init__(self, together: int) -> None:
        super().__init__()
        self._together = together
        self._streams: list[int] = []

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        tls = writer.get_extra_info("ssl_object")
        self.spoken.append(tls.selected_alpn_protocol())
        config = h2.config.H2Configuration(client_side=False)
        connection = h2.connection.H2Connection(config)
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(65_536):
            for event in connection.receive_data(data):
                self._hear(connection, event)
            writer.write(connection.data_to_send())
            await writer.drain()
        writer.close()

    def _hear(self, connection: h2.connection.H2Connection, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self.asked.append(dict(event.headers or ())[b":path"].decode())
        if not isinstance(event, h2.events.StreamEnded):
            return
        assert event.stream_id is not None
        self._streams.append(event.stream_id)
        if len(self._streams) < self._together:
            return
        for stream_id in self._streams:
            connection.send_headers(stream_id, HEADERS)
            connection.send_data(stream_id, BODY, end_stream=True)


@asynccontextmanager
async def multiplexing(context: ssl.SSLContext, together: int) -> AsyncIterator[Multiplexer]:
    peer = Multiplexer(together)
    context.set_alpn_protocols(["h2", "http/1.1"])
    server = await asyncio.start_server(peer.speak, "127.0.0.1", 0, ssl=context)
    peer.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield peer


@pytest.mark.integration
async def test_turns_at_once_share_one_connection(pem: Path) -> None:
    """Nobody is answered before all have asked: over HTTP/1 the second would never be heard."""
    transport = Transport(ca_file=str(pem), http2=True)

    async with (
        multiplexing(trusting(pem), together=8) as peer,
        clients(keepalive_max=1) as reach,
        asyncio.timeout(30),
    ):
        first = asyncio.create_task(asked(reach(transport), peer.url))
        while not peer.connections:
            await asyncio.sleep(0.01)
        others = [asyncio.create_task(asked(reach(transport), peer.url)) for _ in range(7)]
        ends = await asyncio.gather(first, *others)

    assert all(isinstance(end, StepFinish) for end in ends)
    assert (peer.connections, peer.spoken, len(peer.asked)) == (1, ["h2"], 8)
