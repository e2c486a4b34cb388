"""`ask.expire`: decline an ask that has waited longer than the configuration allows."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.people.answer_ask import answer_ask
from fairlead_schema.commands.asks import ExpireAsk
from fairlead_schema.commands.session import SeqReached
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.server import TenantParam
from fairlead_session.people.asks import expire_ask


async def expire(context: ContextDep, tenant: TenantParam, command: ExpireAsk) -> SeqReached:
    """Decline the ask if it has waited longer than `expire_s`. Otherwise change nothing.

    The time of ingest counts, not the caller's.
    """
    limit_s = context.settings.config.asks.expire_s
    before = 0 if limit_s is None else ids.now_ms() - int(limit_s * 1000)
    return await answer_ask(
        context,
        Address(tenant, command.session_id),
        lambda session: expire_ask(session, command.request_id, before=before),
    )
