"""The tickets that were used. A ticket signs in one browser, once."""

from typing import Final

from fairlead_gateway.console.sealed_cookie import SealedValue
from fairlead_schema.errors import Unauthorized

TICKETS_MAX: Final = 10_000


class UsedTickets:
    """The ids of used tickets, until they would not count any more. Each process has its own list."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}

    def use(self, ticket: SealedValue, *, now_ms: int) -> None:
        """Note the use of a ticket. Raises Unauthorized if it was used before."""
        self._until = {id_: until for id_, until in self._until.items() if until > now_ms}
        if ticket.id in self._until or len(self._until) >= TICKETS_MAX:
            raise Unauthorized("The link was used already: sign in with a key")
        self._until[ticket.id] = ticket.until
