"""The verbs of saved approvals: list what stays approved in a project, take one back."""

from fairlead_ingest.command_context import CommandContext
from fairlead_schema.commands.asks import (
    ApprovalRemoved,
    ListApprovals,
    RemoveApproval,
    SavedApprovals,
)
from fairlead_schema.ids import TenantId


async def list_(desk: CommandContext, tenant: TenantId, command: ListApprovals) -> SavedApprovals:
    """The approvals of a project, in the order in which they were given."""
    return SavedApprovals(saved=await desk.eventlog.approvals.get_all(tenant, command.project_id))


async def remove(
    desk: CommandContext, tenant: TenantId, command: RemoveApproval
) -> ApprovalRemoved:
    """Later calls are asked about again; what was permitted before stays as it was."""
    await desk.eventlog.approvals.remove(tenant, command.id)
    return ApprovalRemoved(id=command.id)
