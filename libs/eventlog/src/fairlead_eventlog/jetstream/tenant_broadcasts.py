"""Broadcasts of all sessions of a tenant over core NATS: two subscriptions, however many sessions."""

import asyncio
from contextlib import suppress

import nats.errors
from nats.aio.subscription import Subscription
from pydantic import ValidationError

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.streams.commit_broadcasts import parse_broadcast
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.replicas.tenant_broadcasts import StopListening, TenantListener
from fairlead_schema import subjects
from fairlead_schema.delta import DELTA
from fairlead_schema.ids import TenantId


class NatsTenantBroadcasts:
    """Subscriptions to all commits and all fragments of a tenant."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._closing: set[asyncio.Task[None]] = set()

    async def listen(self, tenant: TenantId, listener: TenantListener) -> StopListening:
        def take_commit(msg: InboundMessage) -> None:
            listener.on_commit(subjects.address(msg.subject), parse_broadcast(msg))

        def take_delta(msg: InboundMessage) -> None:
            with suppress(ValidationError):
                delta = DELTA.validate_json(msg.data)
                listener.on_delta(subjects.delta_address(msg.subject), delta)

        unregister = self._link.on_reconnect(listener.on_loss)
        open_subscriptions: list[Subscription] = []

        def stop() -> None:
            unregister()
            task = asyncio.create_task(_unsubscribe(open_subscriptions))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

        try:
            for subject, take in (
                (subjects.every_commit(tenant), take_commit),
                (subjects.every_delta(tenant), take_delta),
            ):
                open_subscriptions.append(await self._link.listen(subject, take))
            await self._link.flush()
        except nats.errors.Error as error:
            stop()
            raise LogUnavailable(str(error) or type(error).__name__) from error
        except BaseException:
            stop()
            raise
        return stop


async def _unsubscribe(subscriptions: list[Subscription]) -> None:
    for subscription in subscriptions:
        with suppress(nats.errors.Error):
            await subscription.unsubscribe()
