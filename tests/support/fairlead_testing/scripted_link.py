"""A link to a real server, on which a test plays the faults of a cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from typing_extensions import override

from fairlead_eventlog.errors import NoResponders
from fairlead_eventlog.jetstream.client import NatsClient, open_client
from fairlead_eventlog.jetstream.link import NatsLink, NoAnswer
from fairlead_eventlog.jetstream.thin.frames import InboundMessage, encode_headers
from fairlead_eventlog.jetstream.thin.request_mux import Receive
from fairlead_schema.identity.nats_address import NatsAddress

_API: Final = "$JS.API."
_DIRECT_GET: Final = f"{_API}DIRECT.GET."
_RESTORE: Final = "$JS.SNAPSHOT.RESTORE."
_PENDING: Final = "Nats-Num-Pending"


class ScriptedLink(NatsLink):
    """Loses acknowledgements, lags, answers with a status, elects and reconnects on command."""

    def __init__(self, client: NatsClient, timeout_s: float) -> None:
        super().__init__(client, timeout_s)
        self.lost_acks = 0
        """So many of the next stores are carried out, and their answers are lost."""
        self.lost_stores = 0
        """So many of the next stores never reach the server."""
        self.refusals: list[bytes] = []
        """The answers of the next stores, which never reach the server."""
        self.election = 0
        """So many of the next requests find no leader: stores, leader's reads and replicas' reads."""
        self.read_status: str | None = None
        """Every read of a replica ends with this status."""
        self.replica_end: int | None = None
        """A replica lags: it has nothing after this position."""
        self.lagging_reads = 0
        """So many of the next reads meet the lagging replica."""
        self.unheard_chunks = 0
        """So many of the next chunks of a restore find nobody who listens."""
        self.stores: list[bytes] = []
        """The bodies of all stores."""

    def reconnect(self) -> None:
        """Tell everybody that the connection was lost and is back."""
        self.notify_reconnected()

    def lag(self, end: int, *, reads: int) -> None:
        """Let the next reads meet a replica that has nothing after a position."""
        self.replica_end, self.lagging_reads = end, reads

    @override
    async def request(
        self,
        subject: str,
        body: bytes,
        *,
        headers: dict[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> InboundMessage:
        is_store = not subject.startswith("$JS.")
        if is_store:
            self.stores.append(body)
        if self._elects():
            raise NoResponders(subject)
        if self.unheard_chunks and subject.startswith(_RESTORE):
            self.unheard_chunks -= 1
            raise NoResponders(subject)
        if is_store and self.refusals:
            return InboundMessage("", data=self.refusals.pop(0))
        if is_store and self.lost_stores:
            self.lost_stores -= 1
            raise NoAnswer(subject)
        answer = await super().request(subject, body, headers=headers, timeout_s=timeout_s)
        if is_store and self.lost_acks:
            self.lost_acks -= 1
            raise NoAnswer(subject)
        return answer

    @override
    async def send(
        self, subject: str, body: bytes, *, reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        if subject.startswith(_DIRECT_GET):
            status = "503" if self._elects() else self.read_status
            if status is not None:
                ended = {"Status": status, "Description": "as the script says"}
                self.mux.take(InboundMessage(reply, raw_headers=encode_headers(ended)))
                return
            if self.lagging_reads and self.replica_end is not None:
                self.lagging_reads -= 1
                self._receive_up_to(self.replica_end, reply)
        await super().send(subject, body, reply=reply, headers=headers)

    def _elects(self) -> bool:
        if not self.election:
            return False
        self.election -= 1
        return True

    def _receive_up_to(self, end: int, reply: str) -> None:
        receivers = self.mux._receivers  # noqa: SLF001 - the replica's answers come through the link
        token = reply.rpartition(".")[2]
        receivers[token] = _without_later(end, receivers[token])


def _without_later(end: int, receive: Receive) -> Receive:
    """Receives what a replica has: no message after a position."""

    def receive_earlier(msg: InboundMessage) -> None:
        if int(msg.headers.get("Nats-Sequence", "0")) > end:
            return
        if "Status" in msg.headers:
            msg.headers[_PENDING] = "0"
        receive(msg)

    return receive_earlier


@asynccontextmanager
async def open_scripted_link(
    address: NatsAddress, *, timeout_s: float = 5.0
) -> AsyncIterator[ScriptedLink]:
    """A scripted link for the length of a block."""
    client = await open_client(address, name="scripted")
    link = ScriptedLink(client, timeout_s)
    try:
        await link.open()
        yield link
    finally:
        await link.close()
