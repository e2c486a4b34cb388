"""What a way to the server must be able to do. The client over it is always the same."""

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from fairlead_client.deadline import UNLIMITED, Deadline
from fairlead_client.received_event import ReceivedEvent
from fairlead_schema.ids import SessionId


class AsyncSessionTransport(Protocol):
    """Sends commands and follows sessions, through every interruption."""

    async def aclose(self) -> None:
        """Close the connections."""

    async def send(self, verb: str, body: dict[str, Any], *, deadline: Deadline = UNLIMITED) -> Any:  # noqa: ANN401 - any JSON
        """The data of the answer to a command, which is repeated where that is safe. Raises NotInTime."""

    def follow(
        self, session_id: SessionId, *, after: int | None, with_notices: bool, deadline: Deadline
    ) -> AsyncGenerator[ReceivedEvent | None, None]:
        """Every event after a seq as it comes. None: nothing is new at this moment."""

    def read(
        self,
        session_id: SessionId,
        *,
        after: int,
        with_notices: bool,
        deadline: Deadline = UNLIMITED,
    ) -> AsyncGenerator[ReceivedEvent, None]:
        """Every event after a seq that is in the log now."""

    async def wait(self, session_id: SessionId, deadline: Deadline) -> None:
        """Wait until the session rests. Raises NotInTime."""

    def export(self, session_id: SessionId, *, tree: bool) -> AsyncGenerator[bytes, None]:
        """The pieces of an exported file."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        json: object = None,
        content: bytes | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        """Any other operation of the gateway."""
