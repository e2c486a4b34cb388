"""The verb that opens the public feed for a tenant's own client."""

from fairlead_ingest.command_context import ContextDep
from fairlead_schema.commands.feed import FeedOpened, OpenFeed
from fairlead_schema.errors import InvalidRequest
from fairlead_service.rpc.caller import by_own_client, current_caller
from fairlead_service.rpc.server import TenantParam


async def open_feed(context: ContextDep, tenant: TenantParam, command: OpenFeed) -> FeedOpened:
    """Open the caller's own consumer of its tenant's events. Raises InvalidRequest."""
    caller = current_caller()
    if caller is None or not by_own_client():
        raise InvalidRequest("feed.open is for tenants' own clients: services read the stream")
    consumers = context.eventlog.client_consumers
    consumer = await consumers.open_feed(tenant, caller, after=command.after)
    return FeedOpened(stream=consumer.stream, consumer=consumer.name)
