"""The verbs of saved approvals: list what stays approved in a project, take one back."""

from fairlead_ingest.command_context import ContextDep
from fairlead_schema.commands.asks import (
    ApprovalRemoved,
    ListApprovals,
    RemoveApproval,
    SavedApprovals,
)
from fairlead_service.rpc.server import TenantParam


async def list_(context: ContextDep, tenant: TenantParam, command: ListApprovals) -> SavedApprovals:
    """The approvals of a project, in the order in which they were given."""
    return SavedApprovals(
        saved=await context.eventlog.approvals.get_all(tenant, command.project_id)
    )


async def remove(
    context: ContextDep, tenant: TenantParam, command: RemoveApproval
) -> ApprovalRemoved:
    """Later calls are asked about again; what was permitted before stays as it was."""
    await context.eventlog.approvals.remove(tenant, command.id)
    return ApprovalRemoved(id=command.id)
