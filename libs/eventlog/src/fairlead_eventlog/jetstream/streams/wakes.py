"""Wakes on JetStream: one message per session, in one queue that all tenants share fairly."""

import logging
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    NO_CONSUMER,
    NatsLink,
    NoAnswer,
    ServerRefusal,
    stream_error,
)
from fairlead_eventlog.jetstream.messages import purge_subject
from fairlead_eventlog.jetstream.streams.fair_queue import FairQueue
from fairlead_eventlog.ports import Job
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.positions import encode_wake
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.streams import (
    WAKE_DEADLINE_S,
    WAKES,
    WAKES_CONSUMER,
    consumer_config,
    wakes_consumer,
)
from fairlead_schema import subjects
from fairlead_schema.identity.request_context import trace_headers
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)

# Where so many wakes are with runners or put back, a wake keeps its place for so long.
CROWD: Final = 1000
CROWD_WAIT_S: Final = 60.0


class JetStreamWakes:
    """Leaves wakes, and takes them fairly from all tenants."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._deadline_s: float | None = None
        """The deadline of a wake, as this process last read it."""

    async def wake(
        self, at: Address, *, position: int | None = None, commit: CommitHint | None = None
    ) -> bool:
        try:
            body = encode_wake(position, commit)
            await self._link.store(subjects.wake(at), body, headers=trace_headers())
        except ServerRefusal as refusal:
            if refusal.is_second_message:
                return False
            raise stream_error(refusal, WAKES.name) from refusal
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("the wake was not acknowledged") from error
        return True

    async def renew(self, at: Address, *, position: int | None = None) -> bool:
        if await self._is_waiting(at):
            return False
        await purge_subject(self._link, WAKES.name, subjects.wake(at))
        return await self.wake(at, position=position)

    async def take(self, slots: Slots) -> AsyncIterator[Job]:
        await self._inspect_consumer()
        async for job in FairQueue(self._link, WAKES.name, WAKES_CONSUMER, slots).jobs():
            yield job

    async def _is_waiting(self, at: Address) -> bool:
        """Whether the stored wake waits for its turn: not delivered, or put back in a crowd."""
        wake = await self._link.last_message(WAKES.name, subjects.wake(at))
        if wake is None:
            return False
        consumer = await self._inspect_consumer()
        if wake.sequence > int(consumer["delivered"]["stream_seq"]):
            return True
        # Both times are of the servers. The clock of this process may be off.
        age = datetime.fromisoformat(consumer["ts"]) - datetime.fromisoformat(wake.time_stamp)
        is_young = abs(age.total_seconds()) < CROWD_WAIT_S
        return is_young and int(consumer["num_ack_pending"]) >= CROWD

    async def _inspect_consumer(self) -> dict[str, Any]:
        """The state of the consumer that all runners share. Makes the consumer again if it is gone."""
        name = f"{WAKES.name}.{WAKES_CONSUMER}"
        try:
            try:
                consumer = await self._link.api(f"CONSUMER.INFO.{name}")
            except ServerRefusal as refusal:
                if refusal.code != NO_CONSUMER:
                    raise
                log.warning("the consumer of wakes is gone: it is made again, no wake is lost")
                consumer = await self._link.api(f"CONSUMER.CREATE.{name}", self._config())
        except ServerRefusal as refusal:
            raise stream_error(refusal, WAKES.name) from refusal
        self._deadline_s = consumer["config"]["ack_wait"] / 1e9
        return consumer

    def _config(self) -> dict[str, Any]:
        deadline_s = WAKE_DEADLINE_S if self._deadline_s is None else self._deadline_s
        return consumer_config(wakes_consumer(deadline_s))
