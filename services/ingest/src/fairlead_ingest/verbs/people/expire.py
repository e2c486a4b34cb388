"""`ask.expire`: a request that waited for longer than the configuration allows is refused."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.people.answer_ask import answer_with
from fairlead_ingest.verbs.sessions import reached
from fairlead_schema.commands.asks import ExpireAsk
from fairlead_schema.commands.session import ExecutionReached
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.server import TenantParam
from fairlead_session.people import asks


async def expire(context: ContextDep, tenant: TenantParam, command: ExpireAsk) -> ExecutionReached:
    """Refuse it, if it is as old as that; whoever asks for this decides nothing."""
    limit_s = context.settings.config.asks.expire_s
    before = 0 if limit_s is None else ids.now_ms() - int(limit_s * 1000)
    at = Address(tenant, command.session_id)
    session = await answer_with(
        context, at, lambda found: asks.expire_ask(found, command.request_id, before=before)
    )
    return reached(session)
