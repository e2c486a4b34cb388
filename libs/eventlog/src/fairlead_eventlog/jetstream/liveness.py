"""Pings and nudges between instances over core NATS."""

from contextlib import suppress
from typing import Final

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import NatsLink, NoAnswer
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.process_life import Nudge, OnNudge, PingResult
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.positions import nudge_headers, parse_nudge_headers
from fairlead_schema import subjects
from fairlead_schema.subjects import Address

FLUSH_S: Final = 2.0


class NatsLiveness:
    """Pings over core NATS. The server answers at once that nobody listens: the instance is gone."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def start_answering(self, instance: str, on_nudge: OnNudge = lambda _nudge: None) -> None:
        def note(msg: InboundMessage) -> None:
            if msg.data:
                tenant, _, session_id = msg.data.decode().partition(" ")
                on_nudge(Nudge(Address(tenant, session_id), *parse_nudge_headers(msg.headers)))

        def receive(msg: InboundMessage) -> bool:
            if msg.reply and not self._link.client.try_send(msg.reply, b""):
                return False
            note(msg)
            return True

        async def receive_later(msg: InboundMessage) -> None:
            with suppress(LogUnavailable):
                await self._link.send(msg.reply, b"")
            note(msg)

        await self._link.client.subscribe_directly(
            subjects.ping(instance), receive, take_later=receive_later
        )
        # A ping that overtakes the subscription would find nobody.
        with suppress(LogUnavailable):
            await self._link.flush(timeout_s=FLUSH_S)

    async def nudge(
        self,
        instance: str,
        at: Address,
        *,
        position: int | None = None,
        commit: CommitHint | None = None,
    ) -> None:
        headers = nudge_headers(position, commit)
        body = f"{at.tenant} {at.session_id}".encode()
        with suppress(LogUnavailable):
            await self._link.send(subjects.ping(instance), body, headers=headers or None)

    async def ping(self, instance: str, *, timeout_s: float) -> PingResult:
        try:
            await self._link.request(subjects.ping(instance), b"", timeout_s=timeout_s)
        except NoResponders:
            return "gone"
        except (NoAnswer, LogUnavailable):
            return "silent"
        return "alive"

    def connected_s(self) -> float:
        return self._link.connected_s
