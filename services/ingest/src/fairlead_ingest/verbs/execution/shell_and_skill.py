"""`session.shell` and `session.skill`: commands that clients know and that Fairlead refuses."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import load
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam


async def refuse_shell(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> SeqReached:
    """Refuse a shell command of a user. Raises SessionNotFound or ServiceUnavailable."""
    await load(context, Address(tenant, command.session_id))
    raise ServiceUnavailable(
        "Shell commands are not available: ask the agent", service="session.shell"
    )


async def refuse_skill(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> SeqReached:
    """Refuse a skill that a user loads by hand. Raises SessionNotFound or ServiceUnavailable."""
    await load(context, Address(tenant, command.session_id))
    raise ServiceUnavailable(
        "Skills are not put in by hand: name it in a prompt", service="session.skill"
    )
