"""Where a reader is in the stream of a session."""

from dataclasses import dataclass, field
from typing import Any

from fairlead_client.deadline import Deadline
from fairlead_client.fragment_filter import FragmentFilter
from fairlead_client.received_event import ReceivedEvent


@dataclass(slots=True)
class StreamPlace:
    """Where a reader is in the log of a session, and what it has of the open texts."""

    session_id: str
    seq: int | None
    with_notices: bool
    deadline: Deadline
    log: str | None = None
    """The incarnation of the log that the seq belongs to."""
    late_pages: int = 0
    """So many pages in a row were not answered in time."""
    fragments: FragmentFilter = field(default_factory=FragmentFilter)

    @property
    def path(self) -> str:
        return f"/api/session/{self.session_id}/{'stream' if self.with_notices else 'event'}"

    @property
    def params(self) -> dict[str, str]:
        after = {} if self.seq is None else {"after": str(self.seq)}
        return after if self.log is None else {**after, "log": self.log}

    @property
    def command(self) -> dict[str, Any]:
        """The command for the next page of the log over NATS."""
        log = {} if self.log is None else {"log": self.log}
        named = {"sessionID": self.session_id, "after": self.seq or 0}
        return {**named, "notices": self.with_notices, **log}

    def take(self, event: ReceivedEvent) -> bool:
        """Move on to an event. False: the reader has it already."""
        if event.seq is None:
            return True
        if self.seq is not None and event.seq <= self.seq:
            return False
        self.seq = event.seq
        return True
