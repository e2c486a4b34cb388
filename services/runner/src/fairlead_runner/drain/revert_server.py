"""Serves a request to stage or clear a revert: the intent is in the log before any file changes."""

import logging
from typing import Final, Literal

from fairlead_eventlog.errors import CommitTooLarge
from fairlead_runner.drain.drain_context import DrainContext
from fairlead_schema.events import RevertBegun, RevertFailed, SessionEvent
from fairlead_session.next_move import CommitRevert, ServeRevert
from fairlead_session.revert.commands import commit_staged
from fairlead_session.revert.plan import RevertPlan, finish, plan_revert

log = logging.getLogger(__name__)

UNREACHABLE: Final = "the tools service of the location does not answer"


class RevertServer:
    """Serves the requests of one drain."""

    def __init__(self, drain: DrainContext) -> None:
        self._drain = drain
        self._writer = drain.writer
        self._files = drain.runner.file_snapshots

    async def make(self, move: ServeRevert | CommitRevert) -> bool:
        """Make a move about a revert. True: the session rests. Raises StaleDecision."""
        if isinstance(move, ServeRevert):
            return await self._serve()
        self._writer.stage(*commit_staged(self._writer.session))
        return False

    async def _serve(self) -> bool:
        """Serve the open request. True: the session rests. Raises StaleDecision.

        Once a restore has begun it is repeated until the files are in one of the two states.
        """
        plan = plan_revert(self._writer.session)
        if isinstance(plan, str):
            return await self._fail(plan)
        if not plan.changes_files:
            return await self._end(finish(self._writer.session))
        if self._writer.session.revert.begun is None and not await self._begin(plan):
            return False
        return await self._restore(plan)

    async def _begin(self, plan: RevertPlan) -> bool:
        """Write what the files will be. False: the request has failed, and no file has changed."""
        writer = self._writer
        prepared = await self._files.prepare(writer.at, writer.session, plan)
        if prepared is None or prepared.original is None or prepared.target is None:
            reason = UNREACHABLE if prepared is None else prepared.refused or "an empty answer"
            return await self._fail(reason)
        writer.stage(RevertBegun(original=prepared.original, target=prepared.target))
        await writer.commit()
        return True

    async def _restore(self, plan: RevertPlan) -> bool:
        writer = self._writer
        trees = writer.session.revert.begun
        assert trees is not None, "the intent was just committed"
        restored = await self._files.restore(writer.at, writer.session, plan, trees)
        if restored is None or restored.again:
            reason = UNREACHABLE if restored is None else restored.refused
            return await self._drain.ownership.rest("context-unavailable", reason)
        if restored.refused is not None:
            return await self._fail(restored.refused)
        try:
            return await self._end(finish(writer.session, restored.diff, restored.files))
        except CommitTooLarge:
            # The files have changed. What they were is in the snapshots, so the texts can be left out.
            writer.unstage()
            return await self._end(finish(writer.session))

    async def _fail(self, reason: str) -> Literal[False]:
        extra = self._drain.log_fields(reason=reason)
        log.warning("revert failed: the files are as before", extra=extra)
        return await self._end((RevertFailed(reason=reason),))

    async def _end(self, events: tuple[SessionEvent, ...]) -> Literal[False]:
        """Write how the request ended. A rest alone would write nothing of a claim that is new."""
        self._writer.stage(*events)
        await self._writer.commit()
        return False
