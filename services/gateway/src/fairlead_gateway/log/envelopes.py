"""Events of a session from the log, as envelopes for clients."""

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from fairlead_eventlog.ports import Head, SessionLog, StoredCommit
from fairlead_gateway.http.sse import auto_close
from fairlead_gateway.log.contiguity import read_contiguous
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
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.prompt import Delivery
from fairlead_schema.public_events import EventEnvelope
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address

PUBLIC: Final[frozenset[Visibility]] = frozenset({"public"})
PUBLIC_AND_NOTICE: Final[frozenset[Visibility]] = frozenset({"public", "notice"})
COMMITS_PER_READ: Final = 64


class VisibleEvent(NamedTuple):
    """An event that clients may see, and the delivery of its input if it is a promotion."""

    recorded: Recorded
    delivery: Delivery = "steer"


class EnvelopeTranslator:
    """Turns commits into what clients read.

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

    @property
    def session_id(self) -> SessionId:
        return self._at.session_id

    async def select(self, stored: StoredCommit, *, after: int) -> list[VisibleEvent]:
        """The visible events of one commit after a sequence."""
        selected: list[VisibleEvent] = []
        for recorded in stored.commit.events:
            event = recorded.event
            self._remember_delivery(event)
            if recorded.seq <= after or event.visibility not in self._visible:
                continue
            if isinstance(event, PromptPromoted):
                selected.append(VisibleEvent(recorded, await self._take_delivery(event)))
            else:
                selected.append(VisibleEvent(recorded))
        return selected

    async def envelopes(self, stored: StoredCommit, *, after: int) -> list[EventEnvelope]:
        """The visible events of one commit after a sequence, as envelopes."""
        return [
            public_events.public_event(self.session_id, item.recorded, delivery=item.delivery)
            for item in await self.select(stored, after=after)
        ]

    async def _take_delivery(self, event: PromptPromoted) -> Delivery:
        delivery = self._deliveries.pop(event.message_id, None)
        return delivery or await self._look_up_delivery(event.message_id)

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
    log: SessionLog,
    at: Address,
    translation: EnvelopeTranslator,
    *,
    start: Head,
    after: int,
    reach: int,
) -> AsyncIterator[EventEnvelope]:
    """Every visible event after a sequence, at least up to position `reach` of the log.

    Reading begins at `start`. Raises SessionUnreadable where the log cannot be read.
    """
    commits = read_contiguous(log, at, after=start, limit=COMMITS_PER_READ, reach=reach)
    async with auto_close(commits):
        async for stored in commits:
            for envelope in await translation.envelopes(stored, after=after):
                yield envelope
