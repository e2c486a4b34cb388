"""Serves a request to move with changes: applied at the destination, written, then discarded at the source."""

import logging
from typing import Literal

from fairlead_runner.drain.drain_context import DrainContext
from fairlead_runner.drain.revert_server import UNREACHABLE
from fairlead_schema.events import (
    MoveBegun,
    MoveEnded,
    MoveFailed,
    SessionEvent,
    SessionMoved,
)

log = logging.getLogger(__name__)


class MoveServer:
    """Serves the requests of one drain."""

    def __init__(self, drain: DrainContext) -> None:
        self._drain = drain
        self._writer = drain.writer
        self._files = drain.runner.file_snapshots

    async def serve(self) -> bool:
        """Take the next step of the open request. True: the session rests. Raises StaleDecision.

        The log says how far the request has come, so that any runner goes on with it.
        """
        relocation = self._writer.session.relocation
        if relocation.moved:
            return await self._discard()
        if relocation.begun is not None:
            return await self._apply()
        return await self._begin()

    async def _begin(self) -> Literal[False]:
        """Write what the files will be. Without changes the session moves at once."""
        writer, request = self._writer, self._writer.session.relocation.requested
        assert request is not None, "only an open request is served"
        prepared = await self._files.prepare_move(writer.at, writer.session, request.location)
        if prepared is None or prepared.refused is not None:
            return await self._fail(UNREACHABLE if prepared is None else prepared.refused)
        if prepared.trees is None:
            return await self._write(self._move_event(prepared.subdirectory), MoveEnded())
        trees = prepared.trees
        return await self._write(
            MoveBegun(
                before=trees.before,
                target=trees.target,
                changed=trees.changed,
                kept=trees.kept,
                subdirectory=prepared.subdirectory,
            )
        )

    async def _apply(self) -> bool:
        writer = self._writer
        begun = writer.session.relocation.begun
        assert begun is not None, "a transfer has begun"
        applied = await self._files.transfer(writer.at, writer.session, "apply")
        if applied is None or applied.again:
            return await self._rest(UNREACHABLE if applied is None else applied.refused)
        if applied.refused is not None:
            return await self._fail(applied.refused)
        return await self._write(self._move_event(begun.subdirectory))

    def _move_event(self, subdirectory: str | None) -> SessionMoved:
        """The event of a move with changes. It stays in the pool of the session."""
        profile, request = self._writer.session.profile, self._writer.session.relocation.requested
        assert profile is not None, "a session that drains was created"
        assert request is not None, "only an open request is served"
        location = request.location
        return SessionMoved(location=location, subdirectory=subdirectory, pool=profile.pool)

    async def _discard(self) -> bool:
        """The session has moved already, so a failure is only reported (N-20)."""
        discarded = await self._files.transfer(self._writer.at, self._writer.session, "discard")
        if discarded is None or discarded.again:
            return await self._rest(UNREACHABLE if discarded is None else discarded.refused)
        if discarded.refused is not None:
            extra = self._drain.log_fields(reason=discarded.refused)
            log.warning("session has moved: some changes also stay where it was", extra=extra)
        return await self._write(MoveEnded(undiscarded=discarded.refused))

    async def _rest(self, reason: str | None) -> bool:
        return await self._drain.ownership.rest("context-unavailable", reason)

    async def _fail(self, reason: str | None) -> Literal[False]:
        extra = self._drain.log_fields(reason=reason)
        log.warning("move with changes failed: the session stays, with its files", extra=extra)
        return await self._write(MoveFailed(reason=reason or "an empty answer"))

    async def _write(self, *events: SessionEvent) -> Literal[False]:
        """Write at once. A rest alone would write nothing of a claim that is new."""
        self._writer.stage(*events)
        await self._writer.commit()
        return False
