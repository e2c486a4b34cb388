"""`session.skill`: a command that clients know and that Fairlead refuses."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import load
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam


async def skill(context: ContextDep, tenant: TenantParam, command: SessionCommand) -> SeqReached:
    """Refuse a skill that a user loads by hand. Raises SessionNotFound or ServiceUnavailable."""
    await load(context, Address(tenant, command.session_id))
    raise ServiceUnavailable(
        "Skills are not put in by hand: name it in a prompt", service="session.skill"
    )
