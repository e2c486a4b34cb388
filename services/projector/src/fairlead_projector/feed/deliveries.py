"""The deliveries of pending inputs, which feed items of promotions show."""

from collections import OrderedDict
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import START
from fairlead_schema.events import InputCancelled, InputEdited, PromptAdmitted, PromptPromoted
from fairlead_schema.ids import MessageId
from fairlead_schema.prompt import Delivery
from fairlead_schema.raw_records.raw_commit import RawEvent
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address

DELIVERIES_MAX: Final = 10_000


class PendingDeliveries:
    """The deliveries of pending inputs. The event of a promotion has none, but its feed item shows it."""

    def __init__(self, eventlog: EventLog) -> None:
        self._log = eventlog.log
        self._recent: OrderedDict[tuple[Address, MessageId], Delivery] = OrderedDict()

    def note(self, at: Address, event: RawEvent) -> None:
        """Remember the delivery of an admitted or edited input."""
        if event.kind is PromptAdmitted or event.kind is InputEdited:
            self._recent[at, event.data["messageID"]] = event.data["delivery"]
            if len(self._recent) > DELIVERIES_MAX:
                self._recent.popitem(last=False)
        elif event.kind is InputCancelled:
            self._recent.pop((at, event.data["messageID"]), None)

    async def take(self, at: Address, message_id: MessageId) -> Delivery:
        """The delivery of a promoted input. It is read from the log if it is not remembered."""
        delivery = self._recent.pop((at, message_id), None)
        return delivery or await self._look_up(at, message_id)

    async def _look_up(self, at: Address, message_id: MessageId) -> Delivery:
        delivery: Delivery = "steer"
        head, more = START, True
        reach = await self._log.last_commit_position(at)
        while more:
            try:
                commits, more = await self._log.read(at, after=head, reach=reach)
            except RecordError:
                break  # An unreadable log must not stop the other sessions of the shard.
            for recorded in (event for stored in commits for event in stored.commit.events):
                event = recorded.event
                if isinstance(event, PromptAdmitted | InputEdited | PromptPromoted):
                    if event.message_id != message_id:
                        continue
                    if isinstance(event, PromptPromoted):
                        return delivery
                    delivery = event.delivery
            head = commits[-1].head if commits else head
        return delivery
