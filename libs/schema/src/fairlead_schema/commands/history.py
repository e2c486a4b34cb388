"""Commands that read a session over NATS: its events, why it moves or rests, and when it rests."""

from typing import Annotated, Any, Final

from pydantic import Field

from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import UnreadablePlace
from fairlead_schema.model import Model

HISTORY_MAX: Final = 500
WAIT_S_DEFAULT: Final = 20.0
WAIT_S_MAX: Final = 60.0


class ReadHistory(SessionCommand):
    """`session.history`: the events of a session after a sequence, in pages."""

    after: Annotated[int, Field(ge=0, lt=2**53)] = 0
    limit: Annotated[int, Field(ge=1, le=HISTORY_MAX)] = HISTORY_MAX
    log: Annotated[str, Field(max_length=128)] | None = None
    """The incarnation of the log that the cursor belongs to."""
    notices: bool = False
    """Whether notices are read too: asks and their answers, interrupts, recoveries."""


class HistoryRead(Model):
    """Some events in order. A page also ends where it would become too long for a message."""

    events: tuple[dict[str, Any], ...]
    seq: int
    """Read on after it. It may be behind the last event, because some events are private."""
    has_more: bool
    log: str | None = None
    """The incarnation of the log: send it back with the next cursor."""
    unreadable: UnreadablePlace | None = None
    """Where the log cannot be read any further, if the page ends there."""


class WaitForRest(SessionCommand):
    """`session.wait`: answer when the session is at rest, or say that it is not."""

    timeout_s: Annotated[float, Field(gt=0, le=WAIT_S_MAX, alias="timeout_s")] = WAIT_S_DEFAULT
