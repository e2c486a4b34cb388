"""`transfer.claim`: from here on only one origin may replay into a session."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import load
from fairlead_schema.commands.transfer import ClaimOrigin, OriginClaimed
from fairlead_schema.subjects import Address
from fairlead_service.audit import audit_command
from fairlead_service.rpc.server import TenantParam


async def claim(context: ContextDep, tenant: TenantParam, command: ClaimOrigin) -> OriginClaimed:
    """Set the origin of a session that exists, in place of another one. Raises SessionNotFound."""
    at = Address(tenant, command.session_id)
    await load(context, at)
    origin = await context.eventlog.origins.claim(at, command.origin, overwrite=True)
    audit_command("session.claim", tenant, at.session_id)
    return OriginClaimed(session_id=at.session_id, origin=origin)
