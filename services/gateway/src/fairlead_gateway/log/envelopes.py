"""Events of a session from the log, as envelopes for clients."""

from collections.abc import AsyncIterator
from typing import Final

from fairlead_eventlog.ports import SessionLog, StoredCommit
from fairlead_gateway.reads.read_model import ReadModel, ReadsUnavailable
from fairlead_schema import public_events
from fairlead_schema.events import (
    InputCancelled,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    SessionEvent,
    Visibility,
)
from fairlead_schema.ids import MessageId
from fairlead_schema.prompt import Delivery
from fairlead_schema.public_events import EventEnvelope
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address

PUBLIC: Final[frozenset[Visibility]] = frozenset({"public"})
PUBLIC_AND_NOTICE: Final[frozenset[Visibility]] = frozenset({"public", "notice"})
COMMITS_PER_READ: Final = 64


class EnvelopeTranslator:
    """Turns commits into envelopes.

    The envelope of a promotion names the delivery of its input. The promotion itself does not, so
    the translator remembers the delivery of every pending input.
    """

    def __init__(
        self, at: Address, read_model: ReadModel, *, visible: frozenset[Visibility]
    ) -> None:
        self._at = at
        self._read_model = read_model
        self._visible = visible
        self._deliveries: dict[MessageId, Delivery] = {}

    async def envelopes(self, stored: StoredCommit, *, after: int) -> list[EventEnvelope]:
        """The visible events of one commit after a sequence."""
        envelopes: list[EventEnvelope] = []
        for recorded in stored.commit.events:
            self._remember_delivery(recorded.event)
            if recorded.seq > after and recorded.event.visibility in self._visible:
                envelopes.append(await self._envelope(recorded))
        return envelopes

    async def _envelope(self, recorded: Recorded) -> EventEnvelope:
        event = recorded.event
        if not isinstance(event, PromptPromoted):
            return public_events.public_event(self._at.session_id, recorded)
        delivery = self._deliveries.pop(event.message_id, None)
        if delivery is None:
            delivery = await self._look_up_delivery(event.message_id)
        return public_events.public_event(self._at.session_id, recorded, delivery=delivery)

    def _remember_delivery(self, event: SessionEvent) -> None:
        match event:
            case PromptAdmitted() | InputEdited():
                self._deliveries[event.message_id] = event.delivery
            case InputCancelled():
                self._deliveries.pop(event.message_id, None)
            case _:
                pass

    async def _look_up_delivery(self, message_id: MessageId) -> Delivery:
        """The delivery of an input that was admitted before the first commit of this reader."""
        try:
            return await self._read_model.delivery(self._at, message_id) or "steer"
        except ReadsUnavailable:
            return "steer"


async def read_envelopes(
    log: SessionLog, at: Address, translation: EnvelopeTranslator, *, after: int
) -> AsyncIterator[EventEnvelope]:
    """Every visible event after a sequence, up to the current end of the log."""
    head, more = await log.locate(at, after), True
    while more:
        page = await log.read(at, after=head, limit=COMMITS_PER_READ)
        for stored in page.commits:
            for envelope in await translation.envelopes(stored, after=after):
                yield envelope
            head = stored.head
        more = page.more
