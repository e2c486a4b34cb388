"""Keeps one lane open for each webhook that is neither paused nor gone, as the registrations say."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from fairlead_eventlog.connection import EventLog
from fairlead_hooks import metrics
from fairlead_hooks.noted_states import NotedStates
from fairlead_hooks.record_reader import Key, RecordReader
from fairlead_hooks.settings import HooksSettings
from fairlead_hooks.webhooks.health import WebhookHealth
from fairlead_hooks.webhooks.lane import Lane, parse_consumer_name
from fairlead_schema.ids import TenantId, WebhookId
from fairlead_schema.webhooks.record import WebhookRecord, WebhookState

log = logging.getLogger(__name__)


class Lanes:
    """The lanes of this process. Every process has a lane for every webhook; the server shares the events."""

    def __init__(self, eventlog: EventLog, settings: HooksSettings) -> None:
        self._eventlog = eventlog
        self._settings = settings
        self._reader = RecordReader(WebhookRecord, WebhookState)
        self._states = NotedStates(eventlog.hook_states, eventlog.webhooks, "whk_")
        self._lanes: dict[Key, Lane] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Follow the registrations for ever."""
        await self._eventlog.webhooks.watch(lambda _tenant: self._changed.set())
        while True:
            self._changed.clear()
            await self._follow_registrations()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.hooks.refresh_s):
                    await self._changed.wait()

    async def close(self) -> None:
        """Close every lane, and wait for the attempts under way."""
        for key in tuple(self._lanes):
            self._close(key)
        await asyncio.gather(*self._closing)
        metrics.LANES.set(0)

    async def _follow_registrations(self) -> None:
        wanted = await self._load_wanted()
        for key in [key for key, lane in self._lanes.items() if not _is_same(lane, wanted, key)]:
            self._close(key)
        for key, (record, health) in wanted.items():
            if key not in self._lanes:
                self._lanes[key] = Lane(self._eventlog, self._settings, key[0], record, health)
        metrics.LANES.set(len(self._lanes))
        await self._remove_orphans()

    def _close(self, key: Key) -> None:
        """Close a lane beside the others: an attempt under way may take its time."""
        task = asyncio.create_task(self._lanes.pop(key).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _load_wanted(self) -> dict[Key, tuple[WebhookRecord, WebhookHealth]]:
        """The webhooks to which events are sent now."""
        registered = await self._eventlog.webhooks.get_all_tenants()
        states = await self._states.load(registered)
        wanted = {}
        for key, record, state in self._reader.read(registered, states):
            health = WebhookHealth(
                self._eventlog.hook_states, key[0], record, state or WebhookState()
            )
            if not record.paused and not health.gone:
                wanted[key] = (record, health)
        return wanted

    async def _remove_orphans(self) -> None:
        """Delete what is left of webhooks that were removed. The leader confirms each removal."""
        for name in await self._eventlog.feed_consumers.names():
            key = parse_consumer_name(name)
            if key is None or key in self._lanes:
                continue
            if await self._eventlog.webhooks.read(*key) is not None:
                continue
            await self._eventlog.feed_consumers.remove(name)
            await self._forget(*key)
            log.info("the webhook is removed, and what was left of it", extra={"webhook": key[1]})

    async def _forget(self, tenant: TenantId, id_: WebhookId) -> None:
        for key in await self._eventlog.undelivered.get_all(tenant):
            if key.startswith(f"{id_}."):
                await self._eventlog.undelivered.remove(tenant, key)


def _is_same(
    lane: Lane, wanted: Mapping[Key, tuple[WebhookRecord, WebhookHealth]], key: Key
) -> bool:
    found = wanted.get(key)
    return found is not None and found[0] == lane.record and not lane.health.gone
