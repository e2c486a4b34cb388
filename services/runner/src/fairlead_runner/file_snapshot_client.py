"""Asks the tools service of a location for snapshots of its files, and to change or move them."""

import logging
import time
from typing import Final, Literal, TypeAlias, TypeVar

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_runner.settings import RunnerSettings
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.subjects import Address
from fairlead_schema.tools.file_snapshot import (
    CapturedFiles,
    CaptureFiles,
    PreparedRevert,
    PrepareRevert,
    RestoredFiles,
    RestoreFiles,
    StepFiles,
)
from fairlead_schema.tools.file_transfer import (
    PreparedTransfer,
    PrepareTransfer,
    TransferFiles,
    TransferredFiles,
    TransferTrees,
)
from fairlead_session.revert.plan import RevertPlan
from fairlead_session.state.revert import FileTrees
from fairlead_session.state.session import Session
from fairlead_session.state.turn import Attempt
from fairlead_session.turn.step_end import NO_FILES, EndFiles, files_before

log = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=Model)

_Place: TypeAlias = tuple[str, str, LocationRef]
"""A tenant, a pool, and a location that the pool serves for it."""

ASK_AGAIN_S: Final = 60.0
"""A location without snapshots is asked again after so long."""
LOCATIONS_MAX: Final = 1024
PREPARE_S: Final = 30.0
RESTORE_S: Final = 5.0
"""A longer restore goes on. Who asks again waits for it, or for the worker that repeats it."""


class FileSnapshotClient:
    """Asks for the drains of one runner."""

    def __init__(self, eventlog: EventLog, settings: RunnerSettings) -> None:
        self._eventlog = eventlog
        self._config = settings.config
        self._without: dict[_Place, float] = {}

    async def capture(self, at: Address, session: Session) -> str | None:
        """A snapshot of the files before a step; None if there is none. A failure is only logged."""
        return (await self._capture(at, session, None)).snapshot

    async def end_step(self, at: Address, session: Session, attempt: Attempt) -> EndFiles:
        """The files after a step. A step that only read has the files that it began with."""
        before = files_before(session, attempt)
        if before is None or attempt.finished is None or attempt.finished.error is not None:
            return NO_FILES
        if not attempt.may_change_files:
            return EndFiles(before, ())
        captured = await self._capture(at, session, before)
        return EndFiles(captured.snapshot, captured.files)

    async def prepare(
        self, at: Address, session: Session, plan: RevertPlan
    ) -> PreparedRevert | None:
        """The trees of a revert; None if nobody answers."""
        steps = tuple(StepFiles(start=step.start, end=step.end) for step in plan.steps)
        question = PrepareRevert(
            tenant=at.tenant,
            session_id=at.session_id,
            location=_location(session),
            steps=steps,
            original=None if plan.staged is None else plan.staged.original,
        )
        return await self._ask(session, "prepare", question, PreparedRevert, PREPARE_S)

    async def restore(
        self, at: Address, session: Session, plan: RevertPlan, trees: FileTrees
    ) -> RestoredFiles | None:
        """Change files back; None if nobody answers. To ask again is safe."""
        question = RestoreFiles(
            tenant=at.tenant,
            session_id=at.session_id,
            location=_location(session),
            original=trees.original,
            before=trees.original if plan.staged is None else plan.staged.target,
            target=trees.target,
        )
        return await self._ask(session, "restore", question, RestoredFiles, RESTORE_S)

    async def prepare_move(
        self, at: Address, session: Session, destination: LocationRef
    ) -> PreparedTransfer | None:
        """The trees of a move with changes; None if nobody answers."""
        question = PrepareTransfer(
            tenant=at.tenant,
            session_id=at.session_id,
            source=_location(session),
            destination=destination,
        )
        return await self._ask(session, "prepare-move", question, PreparedTransfer, PREPARE_S)

    async def transfer(
        self, at: Address, session: Session, act: Literal["apply", "discard"]
    ) -> TransferredFiles | None:
        """Do what the log has begun; None if nobody answers. To ask again is safe."""
        request, begun = session.relocation.requested, session.relocation.begun
        assert request is not None, "only an open request is served"
        assert begun is not None, "the log has begun the transfer"
        trees = TransferTrees(
            before=begun.before, target=begun.target, changed=begun.changed, kept=begun.kept
        )
        question = TransferFiles(
            tenant=at.tenant,
            session_id=at.session_id,
            source=begun.source,
            destination=request.location,
            request=request.seq,
            trees=trees,
        )
        return await self._ask(session, act, question, TransferredFiles, RESTORE_S)

    async def _capture(self, at: Address, session: Session, since: str | None) -> CapturedFiles:
        place = (at.tenant, self._pool(session), _location(session))
        if not self._config.snapshots(at.tenant) or self._is_without(place):
            return CapturedFiles()
        question = CaptureFiles(
            tenant=at.tenant, session_id=at.session_id, location=place[2], since=since
        )
        timeout_s = self._config.runner.observe_timeout_s
        captured = await self._ask(session, "capture", question, CapturedFiles, timeout_s)
        if captured is None:
            return CapturedFiles()
        if captured.unavailable is not None:
            self._note_without(place)
            extra = {"session_id": at.session_id, "reason": captured.unavailable}
            log.info("location has no snapshots of files: its steps take none", extra=extra)
        return captured

    async def _ask(
        self,
        session: Session,
        act: str,
        question: Model,
        answer: type[Answer],
        timeout_s: float,
    ) -> Answer | None:
        pool = self._pool(session)
        subject = subjects.file_snapshot(pool, act)
        body = question.model_dump_json(by_alias=True, exclude_none=True).encode()
        try:
            raw = await self._eventlog.requests.request(subject, body, timeout_s=timeout_s)
            answered = CommandAnswer[answer].model_validate_json(raw)  # type: ignore[valid-type]
        except (LogError, ValueError) as error:
            extra = {"pool": pool, "reason": str(error)}
            log.warning("tools service does not answer about files", extra=extra)
            return None
        if answered.data is None:
            reason = answered.error.message if answered.error else "an empty answer"
            log.warning("tools service refuses to answer about files", extra={"reason": reason})
        return answered.data

    def _pool(self, session: Session) -> str:
        assert session.profile is not None, "a session that drains was created"
        return session.profile.serving_pool(self._config.pools.default)

    def _is_without(self, place: _Place) -> bool:
        return self._without.get(place, 0.0) > time.monotonic()

    def _note_without(self, place: _Place) -> None:
        if len(self._without) >= LOCATIONS_MAX:
            self._without.clear()
        self._without[place] = time.monotonic() + ASK_AGAIN_S


def _location(session: Session) -> LocationRef:
    assert session.profile is not None, "a session that drains was created"
    return session.profile.location
