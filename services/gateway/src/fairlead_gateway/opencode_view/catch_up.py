"""What a terminal client may have missed: turns under way, open asks, and turns that ended lately."""

import logging
from collections.abc import AsyncIterator
from typing import Final

from fairlead_gateway.opencode_view.folded_sessions import FoldedSessions, Told
from fairlead_gateway.reads.read_model import ReadModel, ReadsUnavailable
from fairlead_schema.ids import SessionId, TenantId
from fairlead_schema.subjects import Address
from fairlead_service.ids import now_ms

log = logging.getLogger(__name__)

BUSY_MAX: Final = 64
"""So many sessions that work or ask are told to a client that connects."""
RECALL_S: Final = 15 * 60.0
"""A client that was away for so long is told how the turns ended that it saw begin."""
RECALLED_MAX: Final = 32


class CatchUp:
    """Loads the sessions of a tenant that a hub did not follow from their beginning."""

    def __init__(self, tenant: TenantId, sessions: FoldedSessions, read_model: ReadModel) -> None:
        self._tenant = tenant
        self._sessions = sessions
        self._read_model = read_model
        self._has_recalled = False

    async def load_busy(self) -> AsyncIterator[Told]:
        """Know the sessions that work or ask people, and tell the turns of those that were unknown."""
        try:
            found = list(await self._read_model.active(self._tenant))
            for kind in ("permission", "question"):
                asks = await self._read_model.asks(self._tenant, kind, directory=None)
                found += [ask["sessionID"] for ask in asks]
        except ReadsUnavailable:
            log.info(
                "reads are not available: a terminal client is told only what this process knows"
            )
            return
        for id_ in list(dict.fromkeys(found))[:BUSY_MAX]:
            told = await self._sessions.load_unknown(self._at(id_))
            if told is not None:
                yield told

    async def recall(self) -> None:
        """Know the sessions that changed before the hub began. Once: the hub follows the others."""
        if self._has_recalled:
            return
        since = now_ms() - round(RECALL_S * 1000)
        try:
            found = await self._read_model.recent_sessions(
                self._tenant, since=since, limit=RECALLED_MAX
            )
        except ReadsUnavailable:
            return
        self._has_recalled = True
        for id_ in reversed(found):
            await self._sessions.load_unknown(self._at(id_), age_s=0.0)

    def _at(self, id_: SessionId) -> Address:
        return Address(self._tenant, id_)
