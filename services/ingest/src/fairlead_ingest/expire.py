"""`ask.expire`: a request that waited for longer than the configuration allows is refused."""

from fairlead_ingest.desk import Desk
from fairlead_ingest.existing import reached
from fairlead_ingest.roused import answer_with
from fairlead_schema.asks import ExpireAsk
from fairlead_schema.commands import Reached
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session import asking


async def expire(desk: Desk, tenant: TenantId, command: ExpireAsk) -> Reached:
    """Refuse it, if it is as old as that; whoever asks for this decides nothing."""
    limit_s = desk.settings.config.asks.expire_s
    before = 0 if limit_s is None else ids.now_ms() - int(limit_s * 1000)
    at = Address(tenant, command.session_id)
    session = await answer_with(
        desk, at, lambda found: asking.expire(found, command.request_id, before=before)
    )
    return reached(session)
