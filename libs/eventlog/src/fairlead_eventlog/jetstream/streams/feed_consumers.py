"""Durable consumers of the feed that belong to services."""

from collections.abc import AsyncIterator
from typing import Any, Final

from fairlead_eventlog.feed.consumer_ports import FeedFilter, FeedMessage
from fairlead_eventlog.jetstream.link import NO_CONSUMER, NatsLink, ServerRefusal, stream_error
from fairlead_eventlog.jetstream.streams.work_queues import JetStreamWorkQueues
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.streams import EVENTS
from fairlead_schema import subjects

_SECOND_NS: Final = 1_000_000_000


class JetStreamFeedConsumers:
    """Consumers of EVENTS. The server remembers what each has acknowledged."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._work = JetStreamWorkQueues(link)

    async def open(self, wanted: FeedFilter) -> None:
        config = _config(wanted)
        current = await self._read_config(wanted.name)
        if current is not None:
            if all(current.get(key) == value for key, value in config.items()):
                return
            # Where a consumer began cannot change.
            config = current | config
        body = {"stream_name": EVENTS.name, "config": _with_start(config, wanted, current)}
        try:
            await self._link.api(f"CONSUMER.CREATE.{EVENTS.name}.{wanted.name}", body)
        except ServerRefusal as refusal:
            raise stream_error(refusal, EVENTS.name) from refusal

    async def remove(self, name: str) -> None:
        try:
            await self._link.api(f"CONSUMER.DELETE.{EVENTS.name}.{name}")
        except ServerRefusal as refusal:
            if refusal.code != NO_CONSUMER:
                raise stream_error(refusal, EVENTS.name) from refusal

    async def names(self) -> frozenset[str]:
        names: list[str] = []
        while True:
            page = await self._link.api(f"CONSUMER.NAMES.{EVENTS.name}", {"offset": len(names)})
            names += page.get("consumers") or ()
            if not page.get("consumers") or len(names) >= int(page.get("total", 0)):
                return frozenset(names)

    def take(self, name: str, slots: Slots) -> AsyncIterator[Job]:
        return self._work.take(EVENTS.name, name, slots)

    async def last_sequence(self) -> int:
        try:
            answer = await self._link.api(f"STREAM.INFO.{EVENTS.name}")
        except ServerRefusal as refusal:
            raise stream_error(refusal, EVENTS.name) from refusal
        return int(answer["state"]["last_seq"])

    async def message_at(self, sequence: int) -> FeedMessage | None:
        message = await self._link.message_at(EVENTS.name, sequence)
        return None if message is None else FeedMessage(message.subject, message.payload)

    async def _read_config(self, name: str) -> dict[str, Any] | None:
        try:
            answer = await self._link.api(f"CONSUMER.INFO.{EVENTS.name}.{name}")
        except ServerRefusal as refusal:
            if refusal.code == NO_CONSUMER:
                return None
            raise stream_error(refusal, EVENTS.name) from refusal
        config: dict[str, Any] = answer["config"]
        return config


def _config(wanted: FeedFilter) -> dict[str, Any]:
    return {
        "durable_name": wanted.name,
        "name": wanted.name,
        "ack_policy": "explicit",
        "ack_wait": int(wanted.deadline_s * _SECOND_NS),
        "max_ack_pending": wanted.pending_max,
        "filter_subjects": [
            subjects.every_event(wanted.tenant, type_) for type_ in sorted(wanted.types)
        ],
    }


def _with_start(
    config: dict[str, Any], wanted: FeedFilter, current: dict[str, Any] | None
) -> dict[str, Any]:
    if current is not None:
        # The server keeps one filter under another name than several.
        return {key: value for key, value in config.items() if key != "filter_subject"}
    start = {"deliver_policy": "by_start_sequence", "opt_start_seq": wanted.after + 1}
    return config | start
