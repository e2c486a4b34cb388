"""The ports of services that read the feed: durable consumers, and single events."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_schema.ids import TenantId


@dataclass(frozen=True, slots=True)
class FeedFilter:
    """The consumer of one webhook: which events of its tenant it gets, and from where on."""

    tenant: TenantId
    name: str
    types: tuple[str, ...]
    """The types of events, as the log names them."""
    after: int
    """The sequence of the feed after which a new consumer begins."""
    deadline_s: float
    """How long one delivery may take before another process gets the event."""
    pending_max: int


class FeedMessage(NamedTuple):
    """One stored event of the feed."""

    subject: str
    payload: bytes


class FeedConsumers(Protocol):
    """Durable consumers of the feed that belong to services, each with a name of its own."""

    async def open(self, wanted: FeedFilter) -> None:
        """Make the consumer, or change it. An existing one stays where it is. Raises LogUnavailable."""

    async def remove(self, name: str) -> None:
        """Delete a consumer, if it exists."""

    async def names(self) -> frozenset[str]:
        """The names of all consumers of the feed."""

    def take(self, name: str, slots: Slots) -> AsyncIterator[Job]:
        """The events of a consumer, as they come. Raises ConsumerMissing."""

    async def last_sequence(self) -> int:
        """The sequence of the last event in the feed."""

    async def message_at(self, sequence: int) -> FeedMessage | None:
        """The event at a sequence; None if it is not there any more."""
