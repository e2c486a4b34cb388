"""One look at all sessions: their states, what waits for people, and what is used."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from fairlead_client.answers.answer_models import data_of, list_of, read_as, read_each
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_schema.commands.quota import TenantUsageReport
from fairlead_schema.errors import Refused, SessionNotFound
from fairlead_schema.ids import SessionId
from fairlead_schema.permission import PermissionRequest, QuestionRequest
from fairlead_schema.session_info import SessionInfo

Ask: TypeAlias = PermissionRequest | QuestionRequest
ASKING: Final = "asks"
_ORDER: Final = (ASKING, "running", "waiting", "queued")
_AT_ONCE: Final = 8
_ASKING_CODES: Final = frozenset({"permission", "question"})
"""The list of asks may be a moment behind the explanation."""


@dataclass(frozen=True, slots=True)
class ShownSession:
    """One session with its state and the reason for it."""

    info: SessionInfo
    state: str
    reason: str
    asks: tuple[Ask, ...] = ()

    @property
    def model(self) -> str:
        model = self.info.model
        return "-" if model is None else f"{model.provider_id}/{model.id}"

    @property
    def cost(self) -> float:
        """With the sub-agents below."""
        children = self.info.children
        return self.info.cost + (0.0 if children is None else children.cost)

    @property
    def tokens(self) -> int:
        tokens = self.info.tokens
        cached = tokens.cache.read + tokens.cache.write
        return tokens.input + cached + tokens.output + tokens.reasoning

    def wire(self) -> dict[str, Any]:
        """The row for programs."""
        return {
            "session": self.info.id,
            "state": self.state,
            "reason": self.reason,
            "model": self.model,
            "tokens": self.tokens,
            "cost": self.cost,
            "updated": self.info.time.updated,
            "title": self.info.title,
            "asks": [ask.id for ask in self.asks],
        }


@dataclass(frozen=True, slots=True)
class SessionsLook:
    """What one look saw."""

    rows: tuple[ShownSession, ...]
    usage: TenantUsageReport

    def amount_of(self, quota: str) -> int:
        """How much of a quota is used now."""
        return next((use.used for use in self.usage.quotas if use.quota == quota), 0)

    def count(self, state: str) -> int:
        """How many sessions are in a state."""
        return sum(row.state == state for row in self.rows)

    def wire(self) -> dict[str, Any]:
        """The look for programs."""
        return {
            "tenant": self.usage.tenant,
            "sessions": [row.wire() for row in self.rows],
            "running": self.amount_of("turns"),
            "calls": self.amount_of("calls"),
            "pending": self.amount_of("pending"),
            "asks": sum(len(row.asks) for row in self.rows),
            "cost": self.usage.cost,
            "tokens": self.usage.tokens,
        }


class ListedSession(NamedTuple):
    """A session of the list with its state there, which is not read: it only tells a change."""

    info: SessionInfo
    status: object


@dataclass(slots=True)
class SessionObserver:
    """Takes looks. An idle session that did not change since the last look is not explained again."""

    client: AsyncFairlead
    limit: int
    _explained: dict[SessionId, tuple[ListedSession, Mapping[str, Any]]] = field(
        default_factory=dict
    )

    async def look(self) -> SessionsLook:
        """Everything as it is now. Raises Refused and ClientError."""
        listed, permissions, questions, usage = await asyncio.gather(
            self._list(),
            self.client.permissions(),
            self.client.questions(),
            self.client.request("GET", "/api/tenant/usage"),
        )
        limit = asyncio.Semaphore(_AT_ONCE)

        async def explain(session: ListedSession) -> Mapping[str, Any] | None:
            async with limit:
                return await self._explain(session)

        explanations = await asyncio.gather(*map(explain, listed))
        explained = [
            (session, explanation)
            for session, explanation in zip(listed, explanations, strict=True)
            if explanation is not None
        ]
        self._explained = {each[0].info.id: each for each in explained}
        asks: list[Ask] = [*permissions, *questions]
        rows = (build_row(session.info, explanation, asks) for session, explanation in explained)
        return SessionsLook(rank(rows), read_as(TenantUsageReport, data_of(usage)))

    async def _list(self) -> list[ListedSession]:
        page = await self.client.request(
            "GET", "/api/session/overview", params={"limit": self.limit}
        )
        items = list_of(page)
        infos = read_each(SessionInfo, items)
        return [
            ListedSession(info, item.get("status")) for info, item in zip(infos, items, strict=True)
        ]

    async def _explain(self, session: ListedSession) -> Mapping[str, Any] | None:
        """Why a session works or rests; None if somebody has erased it."""
        id_ = session.info.id
        known = self._explained.get(id_)
        # A prompt changes the state in the list, and not the time of the last update.
        if known is not None and known[0] == session and known[1].get("state") == "idle":
            return known[1]
        try:
            return await self.client.explain(id_)
        except SessionNotFound:
            return None
        except Refused as refusal:
            return {"state": "broken", "reason": refusal.body.message}


def build_row(
    info: SessionInfo, explanation: Mapping[str, Any], asks: Iterable[Ask]
) -> ShownSession:
    """The row of a session. One that asks a person is in that state, whatever else it does."""
    own = tuple(ask for ask in asks if ask.session_id == info.id)
    asks_somebody = own or explanation.get("code") in _ASKING_CODES
    state = ASKING if asks_somebody else str(explanation.get("state", "unknown"))
    return ShownSession(info, state, str(explanation.get("reason", "")), own)


def rank(rows: Iterable[ShownSession]) -> tuple[ShownSession, ...]:
    """Those that need a person first, then those that work, then the newest."""
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                _ORDER.index(row.state) if row.state in _ORDER else len(_ORDER),
                -row.info.time.updated,
                row.info.id,
            ),
        )
    )
