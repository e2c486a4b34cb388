"""`session.get`: one session as it is now, from the log."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import describe, load
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam


async def get(context: ContextDep, tenant: TenantParam, command: SessionCommand) -> SessionInfo:
    """The session as readers see it. Read models may lag behind the log; this answer does not."""
    return describe(context, await load(context, Address(tenant, command.session_id)))
