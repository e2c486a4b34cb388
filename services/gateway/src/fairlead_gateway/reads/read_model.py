"""The port to the read models: one method per query."""

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
ArchivedFilter: TypeAlias = Literal["hide", "include", "only"]
Direction: TypeAlias = Literal["previous", "next"]

ASKS_MAX: Final = 1000


class ReadsUnavailable(Exception):
    """Postgres is away or not migrated. A later attempt may succeed."""


class UnreadableRow(Exception):
    """A stored row does not fit the contracts of this release."""


class ProjectionProgress(NamedTuple):
    """How far a session is projected, and why its projection stopped, if it did."""

    seq: int
    broken: str | None


class SessionAnchor(NamedTuple):
    """The sort key of the session that a page begins after: creation time and id."""

    time: int
    id: SessionId


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions to list. None does not filter."""

    workspace: str | None = None
    directory: str | None = None
    project: str | None = None
    search: str | None = None
    parent: SessionId | None = None
    """Only the children of this session."""
    roots: bool | None = None
    """True: only sessions without a parent."""
    archived: ArchivedFilter = "hide"


class ReadModel(Protocol):
    """Projected sessions. Every method may raise ReadsUnavailable or UnreadableRow."""

    async def progress(self, at: Address) -> ProjectionProgress | None:
        """How far a session is projected; None if it is not projected at all."""
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
        """The sessions that a runner owns now, or takes next because somebody prompted them."""
        ...

    async def message(self, at: Address, message_id: MessageId) -> Message | None:
        """One message of this session. A message of another session is not found."""
        ...

    async def message_seq(self, at: Address, message_id: MessageId) -> int | None:
        """The sequence of the event that created a message."""
        ...

    async def messages(
        self, at: Address, *, order: Order, after: int | None, limit: int
    ) -> Sequence[Message]:
        """Messages by sequence, beginning after `after` in that order."""
        ...

    async def context(self, at: Address) -> Sequence[Message]:
        """The messages of the next turn: those since the newest compaction, and the current epoch's updates."""
        ...

    async def asks(
        self, tenant: TenantId, kind: AskKind, *, directory: str | None
    ) -> Sequence[Mapping[str, Any]]:
        """Asks that wait for people, oldest first. Directory None means every directory."""
        ...

    async def child_asks(self, at: Address, kind: AskKind) -> Sequence[Mapping[str, Any]]:
        """Asks that wait for people in the descendants of a session, oldest first."""
        ...

    async def delivery(self, at: Address, message_id: MessageId) -> Delivery | None:
        """The delivery of an admitted input."""
        ...
