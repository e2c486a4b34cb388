"""The in-memory twin of the read models. It keeps rows in dictionaries and answers like Postgres."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead_gateway.reads import rows
from fairlead_gateway.reads.read_model import (
    ActivityRow,
    AskKind,
    AskWithSession,
    BrokenSession,
    Order,
    ProjectionProgress,
    ReadsUnavailable,
    RecoveredSession,
    SessionAnchor,
    SessionFilter,
    StateCounts,
)
from fairlead_schema.commands.session_status import SessionOverview
from fairlead_schema.ids import MessageId, SessionId, TenantId
from fairlead_schema.message import Message
from fairlead_schema.prompt import Delivery
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address
from fairlead_session.execution.status import StatusFacts
from fairlead_session.info import client_session


@dataclass(slots=True)
class SessionRows:
    """All rows of one session."""

    session: SessionInfo
    seq: int
    owner: str | None = None
    asked_for: bool = False
    """Somebody prompted the session, and no runner has taken it yet."""
    broken: str | None = None
    rested: str | None = None
    epoch: int = 0
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    deliveries: dict[MessageId, Delivery] = field(default_factory=dict)
    asks: dict[AskKind, list[dict[str, Any]]] = field(default_factory=dict)


class MemoryReadModel:
    """Answers from `rows`. A reason in `unavailable` makes every method raise ReadsUnavailable."""

    def __init__(self) -> None:
        self.rows: dict[Address, SessionRows] = {}
        self.unavailable: str | None = None

    async def progress(self, at: Address) -> ProjectionProgress | None:
        stored = self._find(at)
        return None if stored is None else ProjectionProgress(stored.seq, stored.broken)

    async def session(self, at: Address) -> SessionInfo | None:
        stored = self._find(at)
        return None if stored is None else client_session(stored.session)

    async def sessions(
        self,
        tenant: TenantId,
        wanted: SessionFilter,
        *,
        order: Order,
        after: SessionAnchor | None,
        limit: int,
    ) -> Sequence[SessionInfo]:
        self._check_available()
        sessions = [
            stored.session
            for at, stored in self.rows.items()
            if at.tenant == tenant and _matches(stored.session, wanted)
        ]
        sessions.sort(key=_sort_key, reverse=order == "desc")
        if after is not None:
            sessions = [item for item in sessions if _is_after(_sort_key(item), after, order)]
        return [client_session(item) for item in sessions[:limit]]

    async def overviews(
        self,
        tenant: TenantId,
        wanted: SessionFilter,
        *,
        order: Order,
        after: SessionAnchor | None,
        limit: int,
    ) -> Sequence[SessionOverview]:
        found = await self.sessions(tenant, wanted, order=order, after=after, limit=limit)
        return [self._overview(tenant, session) for session in found]

    async def overviews_by_id(
        self, tenant: TenantId, session_ids: Sequence[SessionId]
    ) -> Sequence[SessionOverview]:
        self._check_available()
        found = [self.rows.get(Address(tenant, session_id)) for session_id in session_ids]
        sessions = sorted((rows.session for rows in found if rows), key=_sort_key, reverse=True)
        return [self._overview(tenant, session) for session in sessions]

    async def state_counts(self, tenant: TenantId) -> StateCounts:
        self._check_available()
        stored = [
            rows
            for at, rows in self.rows.items()
            if at.tenant == tenant and rows.session.time.archived is None
        ]
        asks = [sum(map(len, rows.asks.values())) for rows in stored]
        return StateCounts(
            running=sum(bool(rows.owner) and rows.broken is None for rows in stored),
            waiting=sum(map(bool, asks)),
            asks=sum(asks),
            broken=sum(rows.broken is not None for rows in stored),
        )

    def _overview(self, tenant: TenantId, session: SessionInfo) -> SessionOverview:
        stored = self.rows[Address(tenant, session.id)]
        facts = StatusFacts(
            owner=stored.owner,
            broken=stored.broken,
            archived=session.time.archived is not None,
            stored=session.stored is not None,
            asks=sum(map(len, stored.asks.values())),
            pending=int(stored.asked_for),
            work_requested=stored.asked_for,
            rested=stored.rested,
        )
        return rows.overview_of(client_session(session), facts, seq=stored.seq)

    async def active(self, tenant: TenantId) -> Sequence[SessionId]:
        self._check_available()
        owned = (at for at, stored in self.rows.items() if stored.owner or stored.asked_for)
        return sorted(at.session_id for at in owned if at.tenant == tenant)

    async def recent_sessions(
        self, tenant: TenantId, *, since: int, limit: int
    ) -> Sequence[SessionId]:
        self._check_available()
        found = [
            stored.session
            for at, stored in self.rows.items()
            if at.tenant == tenant and stored.session.time.archived is None
        ]
        found.sort(key=lambda session: session.time.updated, reverse=True)
        return [session.id for session in found if session.time.updated >= since][:limit]

    async def message(self, at: Address, message_id: MessageId) -> Message | None:
        seq = await self.message_seq(at, message_id)
        return (
            None if seq is None else rows.message_from_row({"message": self.rows[at].messages[seq]})
        )

    async def message_seq(self, at: Address, message_id: MessageId) -> int | None:
        stored = self._messages(at)
        return next((seq for seq, message in stored if message["id"] == message_id), None)

    async def messages(
        self, at: Address, *, order: Order, after: int | None, limit: int
    ) -> Sequence[Message]:
        stored = self._messages(at)
        if order == "desc":
            stored.reverse()
        messages = [
            message
            for seq, message in stored
            if after is None or (seq > after if order == "asc" else seq < after)
        ]
        return [rows.message_from_row({"message": message}) for message in messages[:limit]]

    async def context(self, at: Address) -> Sequence[Message]:
        stored = self._messages(at)
        start = max((seq for seq, message in stored if message["type"] == "compaction"), default=0)
        epoch = self.rows[at].epoch if stored else 0
        return [
            rows.message_from_row({"message": message})
            for seq, message in stored
            if seq > (epoch if message["type"] == "system" else start - 1)
        ]

    async def asks(
        self, tenant: TenantId, kind: AskKind, *, directory: str | None
    ) -> Sequence[Mapping[str, Any]]:
        self._check_available()
        return [
            ask
            for at, stored in self.rows.items()
            if at.tenant == tenant and directory in {None, stored.session.location.directory}
            for ask in stored.asks.get(kind, ())
        ]

    async def asks_with_sessions(self, tenant: TenantId, *, limit: int) -> Sequence[AskWithSession]:
        self._check_available()
        found = [
            AskWithSession(
                kind,
                ask,
                stored.session.time.updated,
                stored.session.title,
                stored.session.location.directory,
                stored.session.agent,
                stored.session.parent_id,
                _newest_answer(stored),
            )
            for at, stored in self.rows.items()
            if at.tenant == tenant
            for kind, asks in stored.asks.items()
            for ask in asks
        ]
        return sorted(found, key=lambda row: -row.asked_at)[:limit]

    async def activity(self, tenant: TenantId, *, since: int) -> ActivityRow:
        self._check_available()
        answers = [
            message
            for at, stored in self.rows.items()
            if at.tenant == tenant
            for message in stored.messages.values()
            if message["type"] == "assistant" and message["time"]["created"] >= since
        ]
        cost = sum(message.get("cost") or 0 for message in answers)
        return ActivityRow(len(answers), cost, sum(map(_token_sum, answers)))

    async def checkpoints(self) -> Mapping[int, int]:
        self._check_available()
        return {}

    async def broken_sessions(self, tenant: TenantId, *, limit: int) -> Sequence[BrokenSession]:
        self._check_available()
        found = [
            BrokenSession(at.session_id, stored.broken, stored.session.time.updated)
            for at, stored in self.rows.items()
            if at.tenant == tenant and stored.broken is not None
        ]
        return sorted(found, key=lambda one: -one.time)[:limit]

    async def recoveries(
        self,
        tenant: TenantId,  # noqa: ARG002 - the twin has no events
        *,
        since: int,  # noqa: ARG002
        limit: int,  # noqa: ARG002
    ) -> Sequence[RecoveredSession]:
        self._check_available()
        return []

    async def child_asks(self, at: Address, kind: AskKind) -> Sequence[Mapping[str, Any]]:
        self._check_available()
        children = [
            Address(at.tenant, child.session_id)
            for child, stored in self.rows.items()
            if child.tenant == at.tenant and stored.session.parent_id == at.session_id
        ]
        own = [ask for child in children for ask in self.rows[child].asks.get(kind, ())]
        return [*own, *[ask for child in children for ask in await self.child_asks(child, kind)]]

    async def delivery(self, at: Address, message_id: MessageId) -> Delivery | None:
        stored = self._find(at)
        return None if stored is None else stored.deliveries.get(message_id)

    def _check_available(self) -> None:
        if self.unavailable is not None:
            raise ReadsUnavailable(self.unavailable)

    def _find(self, at: Address) -> SessionRows | None:
        self._check_available()
        return self.rows.get(at)

    def _messages(self, at: Address) -> list[tuple[int, dict[str, Any]]]:
        stored = self._find(at)
        return [] if stored is None else sorted(stored.messages.items())


def _newest_answer(stored: SessionRows) -> dict[str, Any] | None:
    answers = [m for _, m in sorted(stored.messages.items()) if m["type"] == "assistant"]
    return answers[-1] if answers else None


def _token_sum(message: dict[str, Any]) -> int:
    tokens = message.get("tokens")
    if tokens is None:
        return 0
    own = sum(tokens[name] for name in ("input", "output", "reasoning"))
    return int(own + tokens["cache"]["read"] + tokens["cache"]["write"])


def _sort_key(session: SessionInfo) -> SessionAnchor:
    return SessionAnchor(session.time.created, session.id)


def _is_after(key: SessionAnchor, anchor: SessionAnchor, order: Order) -> bool:
    return key > anchor if order == "asc" else key < anchor


def _matches(session: SessionInfo, wanted: SessionFilter) -> bool:
    pairs = (
        (wanted.workspace, session.location.workspace_id),
        (wanted.directory, session.location.directory),
        (wanted.project, session.project_id),
        (wanted.parent, session.parent_id),
    )
    archived = session.time.archived is not None
    if archived != (wanted.archived == "only") and wanted.archived != "include":
        return False
    if wanted.roots and session.parent_id is not None:
        return False
    if any(expected is not None and expected != actual for expected, actual in pairs):
        return False
    return wanted.search is None or wanted.search.lower() in session.title.lower()
