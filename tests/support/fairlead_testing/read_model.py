"""The in-memory twin of the read models: rows in dictionaries, the same answers as Postgres."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead_gateway.reads import rows
from fairlead_gateway.reads.read_model import (
    AskKind,
    Order,
    Progress,
    ReadsUnavailable,
    SessionAnchor,
    SessionFilter,
)
from fairlead_schema.ids import MessageId, SessionId, TenantId
from fairlead_schema.message import Message
from fairlead_schema.prompt import Delivery
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address


@dataclass(slots=True)
class SessionRows:
    """Everything projected of one session."""

    session: SessionInfo
    seq: int
    owner: str | None = None
    broken: str | None = None
    epoch: int = 0
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    deliveries: dict[MessageId, Delivery] = field(default_factory=dict)
    asks: dict[AskKind, list[dict[str, Any]]] = field(default_factory=dict)


class MemoryReadModel:
    """Answers from `rows`; a reason in `away` makes it unavailable."""

    def __init__(self) -> None:
        self.rows: dict[Address, SessionRows] = {}
        self.away: str | None = None

    async def progress(self, at: Address) -> Progress | None:
        found = self._find(at)
        return None if found is None else Progress(found.seq, found.broken)

    async def session(self, at: Address) -> SessionInfo | None:
        found = self._find(at)
        return None if found is None else rows.shown(found.session)

    async def sessions(
        self,
        tenant: TenantId,
        wanted: SessionFilter,
        *,
        order: Order,
        after: SessionAnchor | None,
        limit: int,
    ) -> Sequence[SessionInfo]:
        self._check()
        kept = [
            found.session
            for at, found in self.rows.items()
            if at.tenant == tenant and _wanted(found.session, wanted)
        ]
        kept.sort(key=_key, reverse=order == "desc")
        if after is not None:
            kept = [item for item in kept if _behind(_key(item), after, order)]
        return [rows.shown(item) for item in kept[:limit]]

    async def active(self, tenant: TenantId) -> Sequence[SessionId]:
        self._check()
        owned = (at for at, found in self.rows.items() if found.owner is not None)
        return sorted(at.session_id for at in owned if at.tenant == tenant)

    async def message(self, at: Address, message_id: MessageId) -> Message | None:
        seq = await self.message_seq(at, message_id)
        return None if seq is None else rows.message({"message": self.rows[at].messages[seq]})

    async def message_seq(self, at: Address, message_id: MessageId) -> int | None:
        found = self._messages(at)
        return next((seq for seq, message in found if message["id"] == message_id), None)

    async def messages(
        self, at: Address, *, order: Order, after: int | None, limit: int
    ) -> Sequence[Message]:
        found = self._messages(at)
        if order == "desc":
            found.reverse()
        kept = [
            message
            for seq, message in found
            if after is None or (seq > after if order == "asc" else seq < after)
        ]
        return [rows.message({"message": message}) for message in kept[:limit]]

    async def context(self, at: Address) -> Sequence[Message]:
        found = self._messages(at)
        start = max((seq for seq, message in found if message["type"] == "compaction"), default=0)
        epoch = self.rows[at].epoch if found else 0
        return [
            rows.message({"message": message})
            for seq, message in found
            if seq > (epoch if message["type"] == "system" else start - 1)
        ]

    async def asks(
        self, tenant: TenantId, kind: AskKind, *, directory: str | None
    ) -> Sequence[Mapping[str, Any]]:
        self._check()
        return [
            ask
            for at, found in self.rows.items()
            if at.tenant == tenant and directory in {None, found.session.location.directory}
            for ask in found.asks.get(kind, ())
        ]

    async def child_asks(self, at: Address, kind: AskKind) -> Sequence[Mapping[str, Any]]:
        self._check()
        children = [
            Address(at.tenant, child.session_id)
            for child, found in self.rows.items()
            if child.tenant == at.tenant and found.session.parent_id == at.session_id
        ]
        own = [ask for child in children for ask in self.rows[child].asks.get(kind, ())]
        return [*own, *[ask for child in children for ask in await self.child_asks(child, kind)]]

    async def delivery(self, at: Address, message_id: MessageId) -> Delivery | None:
        found = self._find(at)
        return None if found is None else found.deliveries.get(message_id)

    def _check(self) -> None:
        if self.away is not None:
            raise ReadsUnavailable(self.away)

    def _find(self, at: Address) -> SessionRows | None:
        self._check()
        return self.rows.get(at)

    def _messages(self, at: Address) -> list[tuple[int, dict[str, Any]]]:
        found = self._find(at)
        return [] if found is None else sorted(found.messages.items())


def _key(session: SessionInfo) -> SessionAnchor:
    return SessionAnchor(session.time.created, session.id)


def _behind(key: SessionAnchor, anchor: SessionAnchor, order: Order) -> bool:
    return key > anchor if order == "asc" else key < anchor


def _wanted(session: SessionInfo, wanted: SessionFilter) -> bool:
    pairs = (
        (wanted.workspace, session.location.workspace_id),
        (wanted.directory, session.location.directory),
        (wanted.project, session.project_id),
    )
    if any(asked is not None and asked != has for asked, has in pairs):
        return False
    return wanted.search is None or wanted.search.lower() in session.title.lower()
