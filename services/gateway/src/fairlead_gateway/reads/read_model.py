"""What the gateway asks of the read models: one method per question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from fairlead_schema.ids import MessageId, SessionId, TenantId
from fairlead_schema.message import Message
from fairlead_schema.prompt import Delivery
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address

Order: TypeAlias = Literal["asc", "desc"]
AskKind: TypeAlias = Literal["permission", "question"]
Direction: TypeAlias = Literal["previous", "next"]

ASKS_MAX: Final = 1000


class ReadsUnavailable(Exception):
    """Postgres is away or not migrated: try again."""


class UnreadableRow(Exception):
    """A stored row that today's contracts cannot read."""


class Progress(NamedTuple):
    """How far a session is projected, and why it cannot go on, if so."""

    seq: int
    broken: str | None


class SessionAnchor(NamedTuple):
    """The session a page begins after: its creation time and id are the sort key."""

    time: int
    id: SessionId


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions to list; None does not filter."""

    workspace: str | None = None
    directory: str | None = None
    project: str | None = None
    search: str | None = None


class ReadModel(Protocol):
    """Projected sessions. Every method raises ReadsUnavailable or UnreadableRow."""

    async def progress(self, at: Address) -> Progress | None:
        """How far one session is projected; None when nothing of it is."""
        ...

    async def session(self, at: Address) -> SessionInfo | None:
        """One session."""
        ...

    async def sessions(
        self,
        tenant: TenantId,
        wanted: SessionFilter,
        *,
        order: Order,
        after: SessionAnchor | None,
        limit: int,
    ) -> Sequence[SessionInfo]:
        """Sessions by creation, beginning after the anchor in that order."""
        ...

    async def active(self, tenant: TenantId) -> Sequence[SessionId]:
        """The sessions that a runner owns now."""
        ...

    async def message(self, at: Address, message_id: MessageId) -> Message | None:
        """One message of this session; one of another session does not exist here."""
        ...

    async def message_seq(self, at: Address, message_id: MessageId) -> int | None:
        """Where a message stands in its session."""
        ...

    async def messages(
        self, at: Address, *, order: Order, after: int | None, limit: int
    ) -> Sequence[Message]:
        """Messages by sequence, beginning after `after` in that order."""
        ...

    async def context(self, at: Address) -> Sequence[Message]:
        """What the model sees: from the newest compaction on, and the updates of the epoch in force."""
        ...

    async def asks(
        self, tenant: TenantId, kind: AskKind, *, directory: str | None
    ) -> Sequence[Mapping[str, Any]]:
        """What waits for people, the oldest first; None for every directory."""
        ...

    async def child_asks(self, at: Address, kind: AskKind) -> Sequence[Mapping[str, Any]]:
        """What waits for people in the sessions below one."""
        ...

    async def delivery(self, at: Address, message_id: MessageId) -> Delivery | None:
        """How an admitted input was to be delivered."""
        ...
