"""`transfer.check`: whether sessions may be imported. It writes nothing."""

from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.quotas import quota_error
from fairlead_ingest.replayed_sessions import marker_of, require_file, require_replayable
from fairlead_ingest.verbs.profile.pool import check_permitted
from fairlead_ingest.verbs.profile.restrictions import check_directory_allowed
from fairlead_ingest.verbs.transfer.replay import require_free_ids
from fairlead_schema.commands.transfer import (
    CheckedSession,
    CheckTransfer,
    TransferAmounts,
    TransferChecked,
    TransferredSession,
)
from fairlead_schema.errors import InvalidRequest, ReplayConflict
from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.record import LEVEL_OF_IMPORTS
from fairlead_schema.subjects import Address
from fairlead_service.locations import check_location
from fairlead_service.rpc.caller import current_restrictions
from fairlead_service.rpc.server import TenantParam
from fairlead_session.transfer.replay import ReplayRefused, ReplayTarget, judge_replay


async def check(
    context: ContextDep, tenant: TenantParam, command: CheckTransfer
) -> TransferChecked:
    """How far each session is here, and nothing against its import.

    Raises ReplayConflict, Forbidden, and LimitReached for a quota that has no room.
    """
    require_level(context)
    sessions = [
        await _check_session(context, Address(tenant, wanted.session_id), wanted, command)
        for wanted in command.sessions
    ]
    if command.adds is not None:
        await _require_room(context, tenant, command.adds)
    return TransferChecked(sessions=tuple(sessions))


def require_level(context: CommandContext) -> None:
    """Refuse marked events while an earlier release may read the log. Raises ReplayConflict."""
    level = context.eventlog.status.current.level
    if level < LEVEL_OF_IMPORTS:
        reason = (
            f"an import needs level {LEVEL_OF_IMPORTS} of the log's format, and {level} is finalised:"
            " run `fairlead provision --finalise` when no older release will run again"
        )
        raise ReplayConflict("Level", reason)


async def _check_session(
    context: CommandContext, at: Address, wanted: TransferredSession, command: CheckTransfer
) -> CheckedSession:
    session = (await context.load_confirmed(at)).state
    seq = session.seq
    if wanted.through > seq:
        require_file(
            at.session_id,
            marker_of(session),
            through=wanted.through,
            restores=command.restores,
        )
        require_replayable(session)
    if command.restores is not None:
        return CheckedSession(session_id=at.session_id, seq=seq)
    origin = await context.eventlog.origins.find(at) if seq else None
    target = ReplayTarget(seq, origin)
    # The events are judged when they come. Here only the origin counts.
    outcome = judge_replay(target, (), origin=command.origin, strict=command.strict)
    if isinstance(outcome, ReplayRefused):
        raise ReplayConflict(outcome.fault, outcome.reason, session_id=at.session_id)
    skipped = origin not in {None, command.origin}
    if not skipped and wanted.through > seq:
        _require_location(context, at, wanted.directory)
        _require_pool(context, at, wanted)
        await require_free_ids(context, at, wanted.message_ids)
    return CheckedSession(session_id=at.session_id, seq=seq, skipped=skipped)


def _require_location(context: CommandContext, at: Address, directory: str) -> None:
    """Refuse a session outside of the roots of its tenant and of the caller."""
    refusal = check_location(
        context.settings.config.roots(at.tenant), LocationRef(directory=directory)
    )
    if refusal is not None:
        raise ReplayConflict("Location", refusal.message, session_id=at.session_id)
    check_directory_allowed(current_restrictions(), directory)


def _require_pool(context: CommandContext, at: Address, wanted: TransferredSession) -> None:
    """Refuse a session of a pool that the rules here do not open to its location."""
    if wanted.pool is None:
        return
    try:
        check_permitted(context, at.tenant, wanted.directory, wanted.pool)
    except InvalidRequest as refusal:
        reason = f"{refusal}. Add a rule, or move the session to the default pool before its export"
        raise ReplayConflict("Location", reason, session_id=at.session_id) from refusal


async def _require_room(context: CommandContext, tenant: TenantId, adds: TransferAmounts) -> None:
    exceeded = await context.quotas.find_exceeded_quota(
        tenant,
        {
            "sessions": adds.sessions,
            "log_bytes": adds.log_bytes,
            "output_bytes": adds.output_bytes,
        },
    )
    if exceeded is not None:
        raise quota_error(exceeded)
