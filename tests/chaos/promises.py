"""What callers were promised, how a promise can be broken, and what a session still owes."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from typing_extensions import override

from fairlead_schema.record import Recorded
from fairlead_session.verify.unfinished import find_unfinished_work
from fairlead_testing.session_driver import events_of
from tests.chaos.asks import waiting_asks

QUIET_S: Final = 120.0
Kind: TypeAlias = Literal["lost", "doubled", "stranded", "stale", "turn", "other"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""`turn`: a turn or a call that was lost to an election alone."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: of which kind, of which session, and how."""

    kind: Kind
    session: str
    detail: str

    @override
    def __str__(self) -> str:
        return f"{self.kind}: {self.session}: {self.detail}"


@dataclass(slots=True)
class Promised:
    """What callers were promised: receipts of prompts, in order, and which replies were accepted."""

    receipts: dict[str, list[str]] = field(default_factory=dict)
    replies: dict[str, set[str]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    published: dict[str, set[str]] = field(default_factory=dict)
    """Prompts in the durable intake. They have no order among themselves."""
    deleted: set[str] = field(default_factory=set)

    def acknowledge(self, session: str, message: str) -> None:
        self.receipts.setdefault(session, []).append(message)

    def reply(self, request: str, word: str) -> None:
        self.replies.setdefault(request, set()).add(word)


def what_is_missing(session: str, log: list[Recorded], promised: Promised) -> tuple[str, ...]:
    """What should still happen in a session."""
    if session in promised.deleted:
        purged = [item.event.type for item in log] == ["session.purged"]
        return () if purged else ("its data is not erased",)
    promoted = {event.message_id for event in events_of(log, "prompt.promoted")}
    # The intake admits later than it acknowledges.
    late = promised.published.get(session, set()) - promoted
    return (*work_left(log), *(f"{id_} was published and is not promoted" for id_ in sorted(late)))


def work_left(log: list[Recorded]) -> tuple[str, ...]:
    """What should still move, by itself or by a person."""
    return (*find_unfinished_work(log), *(f"{id_} waits for a person" for id_ in waiting_asks(log)))
