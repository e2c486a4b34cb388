"""Events of a session from the log, as envelopes for clients."""

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from fairlead_eventlog.ports import Head, SessionLog
from fairlead_eventlog.replicas.contiguity import read_contiguous
from fairlead_gateway.http.sse import auto_close
from fairlead_gateway.reads.read_model import ReadModel, ReadsUnavailable
from fairlead_schema.events import (
    InputCancelled,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    Visibility,
)
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.prompt import Delivery
from fairlead_schema.public_events import EventEnvelope, raw_event_json
from fairlead_schema.raw_records.raw_commit import RawCommit, RawEvent, raw_commit
from fairlead_schema.subjects import Address

PUBLIC: Final[frozenset[Visibility]] = frozenset({"public"})
PUBLIC_AND_NOTICE: Final[frozenset[Visibility]] = frozenset({"public", "notice"})
COMMITS_PER_READ: Final = 64
_OF_PENDING_INPUT: Final = frozenset({PromptAdmitted, InputEdited, InputCancelled})


class VisibleEvent(NamedTuple):
    """An event that clients may see, and the delivery of its input if it is a promotion."""

    raw: RawEvent
    delivery: Delivery = "steer"


class EnvelopeTranslator:
    """Turns commits into what clients read.

    The envelope of a promotion names the delivery of its input. The promotion itself does not, so
    the translator remembers the delivery of every pending input.
    """

    def __init__(
        self, at: Address, read_model: ReadModel, *, visible: frozenset[Visibility]
    ) -> None:
        self.at = at
        self._read_model = read_model
        self._visible = visible
        self._deliveries: dict[MessageId, Delivery] = {}

    @property
    def session_id(self) -> SessionId:
        return self.at.session_id

    async def select(self, commit: RawCommit, *, after: int) -> list[VisibleEvent]:
        """The visible events of one commit after a sequence."""
        selected: list[VisibleEvent] = []
        for raw in commit.events:
            kind = raw.kind
            if kind in _OF_PENDING_INPUT:
                self._remember_delivery(raw)
            if raw.seq <= after or kind.visibility not in self._visible:
                continue
            if kind is PromptPromoted:
                selected.append(VisibleEvent(raw, await self._take_delivery(raw)))
            else:
                selected.append(VisibleEvent(raw))
        return selected

    async def envelopes(self, commit: RawCommit, *, after: int) -> list[EventEnvelope]:
        """The visible events of one commit after a sequence, as envelopes."""
        return [
            EventEnvelope.model_validate(
                raw_event_json(self.session_id, item.raw, by=item.raw.by, delivery=item.delivery)
            )
            for item in await self.select(commit, after=after)
        ]

    async def _take_delivery(self, promotion: RawEvent) -> Delivery:
        message_id: MessageId = promotion.data["messageID"]
        delivery = self._deliveries.pop(message_id, None)
        return delivery or await self._look_up_delivery(message_id)

    def _remember_delivery(self, raw: RawEvent) -> None:
        if raw.kind is InputCancelled:
            self._deliveries.pop(raw.data["messageID"], None)
        else:
            self._deliveries[raw.data["messageID"]] = raw.data["delivery"]

    async def _look_up_delivery(self, message_id: MessageId) -> Delivery:
        """The delivery of an input that was admitted before the first commit of this reader."""
        try:
            return await self._read_model.delivery(self.at, message_id) or "steer"
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
            for envelope in await translation.envelopes(raw_commit(stored.commit), after=after):
                yield envelope
