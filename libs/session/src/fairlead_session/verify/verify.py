"""Verifies the log of one session by rules that no log may break.

The fold trusts the log and never rejects. These rules share no code with the fold, so they find its
mistakes.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar, Final, TypeAlias

from pydantic_core import to_json

from fairlead_schema.events import (
    AttemptDispatched,
    AttemptOverflowed,
    CompactionEnded,
    CompactionFailed,
    CompactionStarted,
    ExecutionClaimed,
    ExecutionRecovered,
    ExecutionReleased,
    InputCancelled,
    InputEdited,
    InterruptRequested,
    PromptAdmitted,
    PromptPromoted,
    ResumeRequested,
    RevertCommitted,
    SessionCreated,
    SessionEvent,
    SessionPurged,
    SessionStored,
    ShellRequested,
    ShellStarted,
    StepEnded,
    StepFailed,
    TurnRetried,
)
from fairlead_schema.ids import EventId, MessageId, RunnerId
from fairlead_schema.prompt import Delivery
from fairlead_schema.record import Recorded, event_json
from fairlead_session.verify.asks import AskRules
from fairlead_session.verify.files import MoveRules, RevertRules
from fairlead_session.verify.turn import BlockRules, CallRules, StepRules


@dataclass(frozen=True, slots=True)
class Violation:
    """An event that breaks a rule."""

    seq: int
    rule: str
    detail: str


DIGEST_BYTES: Final = 16
_FIRST_OR_LAST: Final = frozenset({SessionCreated, SessionPurged, SessionStored})

Findings: TypeAlias = Iterator[tuple[str, str]]
Check: TypeAlias = Callable[[SessionEvent], Findings]
EventKinds: TypeAlias = frozenset[type[SessionEvent]]
"""The events that a rule is about. It finds nothing in others, and learns nothing from them."""

# The reasons of a rest after which requested work goes on by itself.
GOES_ON: Final = frozenset(
    {
        "handover",
        "context-unavailable",
        "interrupted",
        "declined",
        "parked",
        "retry-later",
        "budget-unknown",
    }
)


class InboxRules:
    """Every input is admitted once and promoted at most once, in order within its delivery."""

    kinds: ClassVar[EventKinds] = frozenset(
        {
            PromptAdmitted,
            PromptPromoted,
            InputCancelled,
            InputEdited,
            RevertCommitted,
            ShellRequested,
            ShellStarted,
        }
    )

    def __init__(self) -> None:
        self.pending: dict[MessageId, Delivery] = {}
        self._ended: dict[MessageId, str] = {}
        self._shells: set[MessageId] = set()

    def has_met(self, id_: MessageId) -> bool:
        """Whether an input was admitted or promoted under this id."""
        return id_ in self.pending or id_ in self._ended

    def check(self, event: SessionEvent) -> Findings:
        match event:
            case ShellRequested(message_id=id_):
                self._shells.add(id_)
            case ShellStarted(message_id=id_) | InputCancelled(message_id=id_) if (
                id_ in self._shells
            ):
                self._shells.remove(id_)
            case (
                PromptAdmitted()
                | PromptPromoted()
                | InputCancelled()
                | InputEdited()
                | RevertCommitted()
            ):
                yield from self._check_prompt(event)
            case _:
                pass

    def _check_prompt(self, event: SessionEvent) -> Findings:
        match event:
            case PromptAdmitted(message_id=id_):
                if id_ in self.pending or id_ in self._ended:
                    yield "admitted-once", f"{id_} is admitted a second time"
                self.pending[id_] = event.delivery
            case PromptPromoted(message_id=id_):
                yield from self._check_promoted(id_)
            case InputCancelled(message_id=id_):
                if self.pending.pop(id_, None) is None:
                    yield "pending-only", f"{id_} is cancelled and not pending"
                self._ended[id_] = "cancelled"
            case RevertCommitted():
                yield from self._check_withdrawn(event.withdrawn or ())
            case InputEdited(message_id=id_):
                if id_ not in self.pending:
                    yield "pending-only", f"{id_} is edited and not pending"
                else:
                    self.pending[id_] = event.delivery
            case _:
                pass

    def _check_withdrawn(self, ids: tuple[MessageId, ...]) -> Findings:
        for id_ in ids:
            if self.pending.pop(id_, None) is None:
                yield "pending-only", f"{id_} is withdrawn by a revert and not pending"
            self._ended[id_] = "withdrawn"

    def _check_promoted(self, id_: MessageId) -> Findings:
        delivery = self.pending.get(id_)
        if delivery is None:
            yield "promoted-once", f"{id_} is promoted and {self._ended.get(id_, 'not admitted')}"
        else:
            first = next(key for key, kind in self.pending.items() if kind == delivery)
            if first != id_:
                yield "promoted-in-order", f"{id_} overtakes {first}"
            del self.pending[id_]
        self._ended[id_] = "already promoted"


class OwnershipRules:
    """Generations grow, only the owner releases, and an idle owner overlooks no pending input.

    Input that an interrupt or a failure kept may wait until somebody asks for work again.
    """

    kinds: ClassVar[EventKinds] = frozenset(
        {ExecutionClaimed, ExecutionReleased, PromptAdmitted, ResumeRequested, InterruptRequested}
    )

    def __init__(self, inbox: InboxRules) -> None:
        self.owner: tuple[RunnerId, int] | None = None
        self._generation = 0
        self._inbox = inbox
        self._requested = False

    def is_owned(self) -> bool:
        return self.owner is not None

    def check(self, event: SessionEvent) -> Findings:
        match event:
            case ExecutionClaimed(generation=generation):
                if generation <= self._generation:
                    yield "generation", f"{generation} follows {self._generation}"
                self._generation = max(generation, self._generation)
                self.owner = (event.runner, generation)
            case ExecutionReleased(generation=generation):
                if self.owner is None or self.owner[1] != generation:
                    yield (
                        "released-by-owner",
                        f"{generation} is released, the owner is {self.owner}",
                    )
                if event.reason == "idle" and self._inbox.pending and self._requested:
                    yield "rest", f"idle with input pending: {', '.join(self._inbox.pending)}"
                self.owner = None
                self._requested = self._requested and event.reason in GOES_ON
            case PromptAdmitted(resume=resume):
                self._requested = self._requested or resume is not False
            case ResumeRequested():
                self._requested = True
            case InterruptRequested():
                self._requested = False
            case _:
                pass


class AttemptRules:
    """A request leaves only from an owned session, and after the outcome of the last request."""

    kinds: ClassVar[EventKinds] = frozenset(
        {
            AttemptDispatched,
            ExecutionRecovered,
            AttemptOverflowed,
            StepEnded,
            StepFailed,
            TurnRetried,
            ExecutionReleased,
        }
    )

    def __init__(self, ownership: OwnershipRules, calls: CallRules) -> None:
        self.open: AttemptDispatched | None = None
        self._ownership = ownership
        self._calls = calls

    def check(self, event: SessionEvent) -> Findings:
        match event:
            case AttemptDispatched():
                if self.open is not None:
                    yield "one-attempt", f"{self.open.attempt_id} has no outcome yet"
                if self._ownership.owner is None:
                    yield "attempt-owned", f"nobody owns the session of {event.attempt_id}"
                if self._calls.unsettled:
                    yield "tools-settled", f"{', '.join(self._calls.names())} not settled yet"
                self.open = event
            case ExecutionRecovered(attempt_id=id_) | AttemptOverflowed(attempt_id=id_):
                if self.open is not None and self.open.attempt_id == id_:
                    self.open = None
            case StepEnded(assistant_message_id=id_) | StepFailed(assistant_message_id=id_):
                if self.open is not None and self.open.assistant_message_id == id_:
                    self.open = None
            case TurnRetried() | ExecutionReleased(reason="interrupted" | "declined"):
                self.open = None
            case _:
                pass


class CompactionRules:
    """A compaction starts in an owned session and ends once."""

    kinds: ClassVar[EventKinds] = frozenset({CompactionStarted, CompactionEnded, CompactionFailed})

    def __init__(self, ownership: OwnershipRules) -> None:
        self._open: MessageId | None = None
        self._ownership = ownership

    def check(self, event: SessionEvent) -> Findings:
        match event:
            case CompactionStarted(message_id=id_):
                if self._ownership.owner is None:
                    yield "compaction-owned", f"nobody owns the session of {id_}"
                self._open = id_
            case CompactionEnded(message_id=id_) | CompactionFailed(message_id=str(id_)):
                if id_ != self._open:
                    yield "compaction-started", f"{id_} ends, {self._open} was started"
                self._open = None
            case _:
                pass


class LogReading:
    """Reads the log of one session once, with all rules."""

    def __init__(self) -> None:
        self.purged = False
        self.stored: SessionStored | None = None
        """The marker of a stored session, until a restore has brought its last event back."""
        self._begin()

    def _begin(self) -> None:
        """Read from the first event on. Behind a marker the log begins again."""
        self.inbox = InboxRules()
        self.ownership = OwnershipRules(self.inbox)
        self.calls = CallRules()
        self.asks = AskRules()
        self.attempts = AttemptRules(self.ownership, self.calls)
        self._rules = (
            self.inbox,
            self.ownership,
            self.attempts,
            self.calls,
            self.asks,
            StepRules(),
            BlockRules(),
            CompactionRules(self.ownership),
            RevertRules(self.ownership.is_owned),
            MoveRules(self.ownership.is_owned),
        )
        self._checks: dict[type[SessionEvent], tuple[Check, ...]] = {}
        self._seq = 0
        self._digests: dict[EventId, bytes] = {}

    def read(self, recorded: Recorded, stored: bytes | None = None) -> tuple[Violation, ...]:
        """The rules that the next event breaks. An exact repeat of an earlier event breaks none.

        `stored` is a hash that stands for the stored bytes of the event. Without it they are written again.
        """
        digest = (stored or sha256(to_json(event_json(recorded))).digest())[:DIGEST_BYTES]
        if self._digests.get(recorded.id) == digest:
            return ()
        findings: list[tuple[str, str]] = []
        # An import reads every event here. Most follow the one before, and no caller concerns them.
        if not self._follows(recorded):
            findings += self._check_order(recorded)
        event, self._seq = recorded.event, recorded.seq
        if isinstance(event, SessionStored):
            self._begin()
            self.stored = event
        elif self.stored is not None:
            findings += self._check_restored(recorded, self.stored)
        findings += self.asks.check_caller(recorded)
        for check in self._checks_of(type(event)):
            findings += check(event)
        if not isinstance(event, SessionStored):
            self._digests[recorded.id] = digest
        if not findings:
            return ()
        return tuple(Violation(recorded.seq, name, detail) for name, detail in findings)

    def _follows(self, recorded: Recorded) -> bool:
        """Whether an event is an ordinary one, right behind the one before."""
        return (
            recorded.seq == self._seq + 1
            and self._seq > 0
            and not self.purged
            and recorded.id not in self._digests
            and type(recorded.event) not in _FIRST_OR_LAST
        )

    def _checks_of(self, kind: type[SessionEvent]) -> tuple[Check, ...]:
        """The checks of the rules about a kind of event. The others would find nothing in it."""
        checks = self._checks.get(kind)
        if checks is None:
            checks = tuple(rule.check for rule in self._rules if kind in rule.kinds)
            self._checks[kind] = checks
        return checks

    def _check_order(self, recorded: Recorded) -> Findings:
        first, purged = not self._digests, isinstance(recorded.event, SessionPurged)
        if isinstance(recorded.event, SessionStored):
            yield from self._check_marker(recorded)
            return
        if recorded.seq != self._seq + 1 and not (first and purged):
            yield "sequence", f"{recorded.seq} follows {self._seq}"
        if recorded.id in self._digests:
            yield "event-id", f"{recorded.id} stands here a second time"
        if self.purged:
            yield "purged-last", f"{recorded.event.type} follows the session's last word"
        elif isinstance(recorded.event, SessionCreated) != first and not (first and purged):
            yield "created-first", f"{recorded.event.type} at the beginning or creation later"
        self.purged = self.purged or purged

    def _check_restored(self, recorded: Recorded, marker: SessionStored) -> Findings:
        """Only a replay of the file, or a purge, follows a marker until the session is back."""
        if recorded.imported is None and not self.purged:
            yield "stored-replay", f"{recorded.event.type} is no part of {marker.file.name}"
        if recorded.seq == marker.file.seq:
            self.stored = None

    def _check_marker(self, recorded: Recorded) -> Findings:
        """A marker stands behind all events of its file, or first: what it stores may be erased."""
        event = recorded.event
        assert isinstance(event, SessionStored), event.type
        if recorded.seq:
            yield "stored-marker", f"the marker has the seq {recorded.seq}, and not 0"
        if self.purged:
            yield "purged-last", f"{event.type} follows the session's last word"
        if self._digests and self._seq != event.file.seq:
            yield (
                "stored-marker",
                f"the file ends with {event.file.seq}, and the log with {self._seq}",
            )


def verify(events: Iterable[Recorded]) -> list[Violation]:
    """Every violation in one session's log, from its first event on, in order."""
    reading = LogReading()
    return [violation for recorded in events for violation in reading.read(recorded)]
