"""`hook.purge`: remove every webhook and every schedule of a tenant."""

from fairlead_ingest.command_context import ContextDep
from fairlead_schema.commands.hooks.webhooks import HooksPurged, PurgeHooks
from fairlead_service.audit import audit_command
from fairlead_service.rpc.server import TenantParam


async def purge(context: ContextDep, tenant: TenantParam, _command: PurgeHooks) -> HooksPurged:
    """Remove everything. A second call removes what was made meanwhile."""
    webhooks = await context.eventlog.webhooks.get_all(tenant)
    for key in webhooks:
        await context.eventlog.webhooks.remove(tenant, key)
    schedules = await context.eventlog.schedules.get_all(tenant)
    for key in schedules:
        await context.eventlog.schedules.remove(tenant, key)
    audit_command("hook.purge", tenant, tenant)
    return HooksPurged(webhooks=len(webhooks), schedules=len(schedules))
