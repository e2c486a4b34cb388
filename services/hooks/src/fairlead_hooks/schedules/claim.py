"""Claims due times: of several processes one sends the prompt, and another one takes over if it dies."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fairlead_eventlog.errors import RecordChanged
from fairlead_eventlog.register_ports import NO_RECORD, Records
from fairlead_schema.ids import TenantId
from fairlead_schema.schedules.record import ScheduleRecord, ScheduleRun, ScheduleState
from fairlead_service.ids import now_ms
from fairlead_session.schedules.due_times import RunPlan, plan_run


@dataclass(frozen=True, slots=True)
class Claim:
    """A due time that this process handles, and the revision that guards its note."""

    due: int
    revision: int


@dataclass(frozen=True, slots=True)
class LookAgain:
    """There is nothing to do before a moment; None: never."""

    at: int | None


Claimed: TypeAlias = Claim | LookAgain


class RunClaims:
    """The notes of runs. A claim decides who sends first, never whether a prompt counts once."""

    def __init__(self, states: Records, worker: str, *, claim_ms: int, late_ms: int) -> None:
        self._states = states
        self._worker = worker
        self._claim_ms = claim_ms
        self._late_ms = late_ms

    async def take(self, tenant: TenantId, record: ScheduleRecord) -> Claimed:
        """Claim what is due now. Raises LogUnavailable."""
        now = now_ms()
        found = await self._states.read(tenant, record.id)
        state = None if found is None else ScheduleState.model_validate_json(found.value)
        revision = NO_RECORD if found is None else found.revision
        plan = plan_run(
            record.timing,
            handled_ms=handled_until(record, state),
            now_ms=now,
            late_ms=self._late_ms,
        )
        if plan.run is None:
            await self._note_skipped(tenant, record, plan, revision)
            return LookAgain(plan.next)
        if state is not None and self._is_handled_elsewhere(state, plan.run, now):
            return LookAgain(state.last.time + self._claim_ms)
        run = ScheduleRun(due=plan.run, outcome="started", time=now)
        try:
            return Claim(plan.run, await self._store(tenant, record, run, revision))
        except RecordChanged:
            return LookAgain(now)

    async def finish(
        self, tenant: TenantId, record: ScheduleRecord, claim: Claim, run: ScheduleRun
    ) -> Literal["noted", "noted by another"]:
        """Note the outcome of a run. A process that took it over has sent the same prompt."""
        try:
            await self._store(tenant, record, run, claim.revision)
        except RecordChanged:
            return "noted by another"
        return "noted"

    async def _note_skipped(
        self, tenant: TenantId, record: ScheduleRecord, plan: RunPlan, revision: int
    ) -> None:
        if plan.skip is None:
            return
        run = ScheduleRun(due=plan.skip, outcome="skipped", time=now_ms())
        try:
            await self._store(tenant, record, run, revision)
        except RecordChanged:
            return  # Another process saw the same.

    async def _store(
        self, tenant: TenantId, record: ScheduleRecord, run: ScheduleRun, revision: int
    ) -> int:
        state = ScheduleState(last=run, worker=self._worker)
        value = state.model_dump_json(by_alias=True, exclude_none=True).encode()
        return await self._states.replace(tenant, record.id, value, revision=revision)

    def _is_handled_elsewhere(self, state: ScheduleState, due: int, now: int) -> bool:
        """Whether another process has begun this run a moment ago."""
        last = state.last
        begun = last.outcome == "started" and last.due == due
        return begun and state.worker != self._worker and now - last.time < self._claim_ms


def handled_until(record: ScheduleRecord, state: ScheduleState | None) -> int:
    """The last due time that needs no run: a run that only began is not handled."""
    if state is None or state.last.outcome == "started":
        return record.since
    return max(record.since, state.last.due)
