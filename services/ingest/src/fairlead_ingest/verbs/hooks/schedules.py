"""`schedule.…`: make, list, change and remove schedules. The hooks service sends their prompts."""

from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.verbs import sessions
from fairlead_ingest.verbs.hooks.records import (
    add_record,
    change_record,
    read_all,
    read_record,
)
from fairlead_ingest.verbs.input.attachments import check_prompt
from fairlead_ingest.verbs.profile.create import check_creation
from fairlead_ingest.verbs.profile.restrictions import check_session_allowed
from fairlead_schema.commands.hooks.schedules import (
    ChangeSchedule,
    CreateSchedule,
    ListSchedules,
    ScheduleInfo,
    ScheduleQuery,
    Schedules,
)
from fairlead_schema.commands.hooks.webhooks import HookRemoved
from fairlead_schema.commands.session import CreateSession
from fairlead_schema.errors import InvalidRequest, ScheduleNotFound
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.ids import ScheduleId, TenantId
from fairlead_schema.schedules.record import ScheduleRecord, ScheduleState, ScheduleTiming
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.audit import audit_command
from fairlead_service.rpc.caller import current_caller, current_restrictions
from fairlead_service.rpc.server import TenantParam
from fairlead_session.schedules.due_times import TimingInvalid, check_timing, next_due


async def create(context: ContextDep, tenant: TenantParam, command: CreateSchedule) -> ScheduleInfo:
    """Make a schedule. Its runs are those of the caller. An exact retry makes no second one."""
    check_prompt(context, command.prompt)
    await _check_session(context, tenant, command)
    now = ids.now_ms()
    timing = ScheduleTiming(
        at=command.at, cron=command.cron, timezone=command.timezone, missed=command.missed
    )
    _check_timing(timing)
    record = ScheduleRecord(
        id=command.id or ids.schedule_id(),
        name=command.name,
        timing=timing,
        prompt=command.prompt,
        delivery=command.delivery,
        session=command.session,
        agent=command.agent,
        model=command.model,
        location=command.location,
        by=current_caller(),
        restrictions=_restrictions(),
        created=now,
        changed=now,
        since=_begin(timing, now),
    )
    stored, is_new = await add_record(
        context.eventlog.schedules,
        tenant,
        record.id,
        record,
        count_max=context.settings.config.hooks.schedules_max,
        kind="schedules",
        is_repeat=lambda known: _is_repeat(known, record),
    )
    if is_new:
        audit_command("schedule.create", tenant, record.id)
    return describe(stored, None if is_new else await _state(context, tenant, stored.id))


async def list_(context: ContextDep, tenant: TenantParam, _command: ListSchedules) -> Schedules:
    """Every schedule of the tenant, with its next and its last run."""
    records = await read_all(context.eventlog.schedules, tenant, ScheduleRecord)
    return Schedules(
        schedules=tuple(
            [describe(record, await _state(context, tenant, record.id)) for record in records]
        )
    )


async def get(context: ContextDep, tenant: TenantParam, command: ScheduleQuery) -> ScheduleInfo:
    """One schedule of the tenant."""
    record = await read_record(context.eventlog.schedules, tenant, command.id, ScheduleRecord)
    if record is None:
        raise ScheduleNotFound(command.id)
    return describe(record, await _state(context, tenant, record.id))


async def change(context: ContextDep, tenant: TenantParam, command: ChangeSchedule) -> ScheduleInfo:
    """Change a schedule. Whoever changes more than its pause is the principal of its later runs."""
    if command.prompt is not None:
        check_prompt(context, command.prompt)
    now = ids.now_ms()
    record = await change_record(
        context.eventlog.schedules,
        tenant,
        command.id,
        ScheduleRecord,
        lambda known: _apply(known, command, now),
    )
    if record is None:
        raise ScheduleNotFound(command.id)
    audit_command("schedule.change", tenant, record.id)
    return describe(record, await _state(context, tenant, record.id))


async def remove(context: ContextDep, tenant: TenantParam, command: ScheduleQuery) -> HookRemoved:
    """Remove a schedule. Its sessions stay."""
    await context.eventlog.schedules.remove(tenant, command.id)
    audit_command("schedule.remove", tenant, command.id)
    return HookRemoved(id=command.id)


def describe(record: ScheduleRecord, state: ScheduleState | None) -> ScheduleInfo:
    """A schedule as callers see it."""
    handled = record.since if state is None else max(record.since, state.last.due)
    timing = record.timing
    return ScheduleInfo(
        id=record.id,
        name=record.name,
        at=timing.at,
        cron=timing.cron,
        timezone=timing.timezone,
        missed=timing.missed,
        prompt=record.prompt,
        delivery=record.delivery,
        session=record.session,
        paused=record.paused,
        next=None if record.paused else next_due(timing, handled),
        last=None if state is None else state.last,
        by=record.by,
        created=record.created,
        changed=record.changed,
    )


def _apply(record: ScheduleRecord, command: ChangeSchedule, now: int) -> ScheduleRecord:
    given = command.model_fields_set - {"id"}
    timing = _apply_timing(record.timing, command)
    _check_timing(timing)
    plain = ("name", "prompt", "paused")
    update: dict[str, object] = {name: getattr(command, name) for name in plain if name in given}
    update |= {"timing": timing, "changed": max(now, record.changed + 1)}
    if timing != record.timing:
        update["since"] = _begin(timing, now)
    elif record.paused and command.paused is False:
        update["since"] = now
    if given - {"paused"}:
        # Who writes the prompt answers for it: nobody borrows the rights of another principal.
        update |= {"by": current_caller(), "restrictions": _restrictions()}
    return record.model_copy(update=update)


def _apply_timing(timing: ScheduleTiming, command: ChangeSchedule) -> ScheduleTiming:
    update: dict[str, object] = {
        name: value
        for name, value in (("timezone", command.timezone), ("missed", command.missed))
        if value is not None
    }
    if command.at is not None:
        update |= {"at": command.at, "cron": None}
    if command.cron is not None:
        update |= {"at": None, "cron": command.cron}
    return timing.model_copy(update=update)


def _is_repeat(known: ScheduleRecord, record: ScheduleRecord) -> bool:
    """Whether a record is what the same request made before, and nobody has changed it since."""
    moment = {"created": known.created, "changed": known.created, "since": known.since}
    return known == record.model_copy(update=moment)


def _begin(timing: ScheduleTiming, now: int) -> int:
    """The moment before the first due time. A single time that is past is due at once."""
    return now if timing.at is None else min(now, timing.at - 1)


def _check_timing(timing: ScheduleTiming) -> None:
    try:
        check_timing(timing)
    except TimingInvalid as error:
        raise InvalidRequest(str(error), kind="Body", field=error.field) from error


async def _check_session(
    context: CommandContext, tenant: TenantId, command: CreateSchedule
) -> None:
    """Refuse what no run could use, before anything is written."""
    if command.session in {"new", "same"}:
        chosen = CreateSession.model_construct(
            agent=command.agent, model=command.model, location=command.location
        )
        check_creation(context.settings.config, tenant, chosen)
    else:
        known = await sessions.load(context, Address(tenant, command.session))
        check_session_allowed(context, known)


def _restrictions() -> Restrictions | None:
    restrictions = current_restrictions()
    return None if restrictions == Restrictions() else restrictions


async def _state(
    context: CommandContext, tenant: TenantId, id_: ScheduleId
) -> ScheduleState | None:
    return await read_record(context.eventlog.hook_states, tenant, id_, ScheduleState)
