"""The port to the read models: one method per query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from fairlead_schema.commands.session_status import SessionOverview
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


class StateCounts(NamedTuple):
    """How many sessions of a tenant are in the states that people look for."""

    running: int = 0
    waiting: int = 0
    asks: int = 0
    broken: int = 0


class AskWithSession(NamedTuple):
    """One pending ask, with what a person wants to know before the answer."""

    kind: AskKind
    request: Mapping[str, Any]
    asked_at: int
    title: str
    directory: str
    agent: str | None = None
    parent_id: SessionId | None = None
    newest: Mapping[str, Any] | None = None
    """The newest answer of the model, as it is stored."""


class ActivityRow(NamedTuple):
    """What turns have used."""

    turns: int
    cost: float
    tokens: int


class BrokenSession(NamedTuple):
    """A session whose log cannot be read any further."""

    session_id: SessionId
    reason: str
    time: int


class RecoveredSession(NamedTuple):
    """How a new owner recovered the turn of a dead one."""

    session_id: SessionId
    time: int
    action: str
    detail: str


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

    async def overviews(
        self,
        tenant: TenantId,
        wanted: SessionFilter,
        *,
        order: Order,
        after: SessionAnchor | None,
        limit: int,
    ) -> Sequence[SessionOverview]:
        """Sessions with their states, in the order of `sessions`."""
        ...

    async def overviews_by_id(
        self, tenant: TenantId, session_ids: Sequence[SessionId]
    ) -> Sequence[SessionOverview]:
        """The sessions with these ids that exist, newest first, with their states."""
        ...

    async def state_counts(self, tenant: TenantId) -> StateCounts:
        """How many sessions run, wait for people or are broken."""
        ...

    async def active(self, tenant: TenantId) -> Sequence[SessionId]:
        """The sessions that a runner owns now, or takes next because somebody prompted them."""
        ...

    async def recent_sessions(
        self, tenant: TenantId, *, since: int, limit: int
    ) -> Sequence[SessionId]:
        """The sessions with an event since a time, the newest one first. Archived ones are left out."""
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

    async def asks_with_sessions(self, tenant: TenantId, *, limit: int) -> Sequence[AskWithSession]:
        """Asks that wait for people, newest first, with their sessions."""
        ...

    async def activity(self, tenant: TenantId, *, since: int) -> ActivityRow:
        """What the turns since a time have used."""
        ...

    async def checkpoints(self) -> Mapping[int, int]:
        """The position up to which each shard is projected."""
        ...

    async def broken_sessions(self, tenant: TenantId, *, limit: int) -> Sequence[BrokenSession]:
        """Sessions that cannot be read any further, newest first."""
        ...

    async def recoveries(
        self, tenant: TenantId, *, since: int, limit: int
    ) -> Sequence[RecoveredSession]:
        """The newest recovery of each recovered session, newest first."""
        ...

    async def child_asks(self, at: Address, kind: AskKind) -> Sequence[Mapping[str, Any]]:
        """Asks that wait for people in the descendants of a session, oldest first."""
        ...

    async def delivery(self, at: Address, message_id: MessageId) -> Delivery | None:
        """The delivery of an admitted input."""
        ...
