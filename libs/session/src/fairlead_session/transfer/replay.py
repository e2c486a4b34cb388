"""The rules of a replay: which events of a batch are new, which repeat, and which cannot be taken.

The order of the checks is a contract (H-27): a strict origin, repeats, another origin, gaps, event ids.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fairlead_schema.ids import EventId
from fairlead_session.transfer.events import StoredEvent

ReplayFault: TypeAlias = Literal["Origin", "Divergent", "Gap", "ForeignEventID"]


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """A session as it is, as far as a batch of events concerns it."""

    seq: int
    origin: str | None = None
    """Who replays into the session; None if nobody has claimed it."""
    stored: Mapping[int, StoredEvent] | None = None
    """The events at the places that the batch claims, up to `seq`."""
    event_ids: AbstractSet[EventId] = frozenset()
    """The ids of all events of the session."""


@dataclass(frozen=True, slots=True)
class ReplayAccepted:
    """The events that are new, in order, perhaps none; and whether the origin claims the session."""

    new: Sequence[StoredEvent]
    claims: bool


@dataclass(frozen=True, slots=True)
class ReplaySkipped:
    """Another origin replays into the session, so that nothing of the batch is taken."""

    origin: str


@dataclass(frozen=True, slots=True)
class ReplayRefused:
    """The batch cannot be taken, and nothing of it is."""

    fault: ReplayFault
    seq: int
    reason: str


ReplayOutcome: TypeAlias = ReplayAccepted | ReplaySkipped | ReplayRefused


def judge_replay(
    target: ReplayTarget, batch: Sequence[StoredEvent], *, origin: str | None, strict: bool
) -> ReplayOutcome:
    """What becomes of a batch of one session. The events are decoded and in the order of the file."""
    foreign = target.origin if target.origin not in {None, origin} else None
    first = batch[0]["seq"] if batch else target.seq + 1
    if strict and foreign is not None:
        return ReplayRefused("Origin", first, f"the session is replayed from {foreign}")
    divergent = _find_divergence(target, batch)
    if divergent is not None:
        return divergent
    new = [event for event in batch if event["seq"] > target.seq]
    if new and foreign is not None:
        return ReplaySkipped(foreign)
    refused = _find_gap(target, new) or _find_foreign_id(target, new)
    if refused is not None:
        return refused
    return ReplayAccepted(new, claims=origin is not None and target.origin is None)


def _find_divergence(target: ReplayTarget, batch: Sequence[StoredEvent]) -> ReplayRefused | None:
    for event in batch:
        seq = event["seq"]
        if seq <= target.seq and (target.stored or {}).get(seq) != event:
            reason = f"event {seq} of the session is another one than that of the replay"
            return ReplayRefused("Divergent", seq, reason)
    return None


def _find_gap(target: ReplayTarget, new: Sequence[StoredEvent]) -> ReplayRefused | None:
    for expected, event in enumerate(new, start=target.seq + 1):
        seq = event["seq"]
        if seq != expected:
            return ReplayRefused("Gap", seq, f"event {expected} is missing before event {seq}")
    return None


def _find_foreign_id(target: ReplayTarget, new: Sequence[StoredEvent]) -> ReplayRefused | None:
    seen: set[EventId] = set()
    for event in new:
        id_ = event["id"]
        if id_ in target.event_ids or id_ in seen:
            reason = f"the id {id_} belongs to another event"
            return ReplayRefused("ForeignEventID", event["seq"], reason)
        seen.add(id_)
    return None
