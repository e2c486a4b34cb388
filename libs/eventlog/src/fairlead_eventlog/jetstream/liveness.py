"""Pings and nudges between instances over core NATS."""

from contextlib import suppress
from typing import Final

import nats.errors
from nats.aio.msg import Msg

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import (
    NatsLink,
)
from fairlead_eventlog.process_life import Nudge, OnNudge, PingResult
from fairlead_eventlog.replicas.positions import POSITION_HEADER, parse_position
from fairlead_schema import subjects
from fairlead_schema.subjects import Address

FLUSH_S: Final = 2


class NatsLiveness:
    """Pings over core NATS. The server answers at once that nobody listens: the instance is gone."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def start_answering(self, instance: str, on_nudge: OnNudge = lambda _nudge: None) -> None:
        async def receive(msg: Msg) -> None:
            if msg.data:
                tenant, _, session_id = msg.data.decode().partition(" ")
                position = (msg.headers or {}).get(POSITION_HEADER, "")
                on_nudge(Nudge(Address(tenant, session_id), parse_position(position)))
            if msg.reply:
                await msg.respond(b"")

        await self._link.client.subscribe(subjects.ping(instance), cb=receive)
        # A ping that overtakes the subscription would find nobody.
        with suppress(nats.errors.Error, TimeoutError):
            await self._link.client.flush(timeout=FLUSH_S)

    async def nudge(self, instance: str, at: Address, *, position: int | None = None) -> None:
        headers = None if position is None else {POSITION_HEADER: str(position)}
        body = f"{at.tenant} {at.session_id}".encode()
        with suppress(LogUnavailable):
            await self._link.send(subjects.ping(instance), body, headers=headers)

    async def ping(self, instance: str, *, timeout_s: float) -> PingResult:
        try:
            await self._link.client.request(subjects.ping(instance), b"", timeout=timeout_s)
        except nats.errors.NoRespondersError:
            return "gone"
        except (nats.errors.Error, TimeoutError):
            return "silent"
        return "alive"

    def connected_s(self) -> float:
        return self._link.connected_s
