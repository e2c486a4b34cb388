"""The verbs of saved approvals: list the approvals of a project, remove one."""

from fairlead_ingest.command_context import ContextDep
from fairlead_schema.commands.asks import (
    ApprovalRemoved,
    ListApprovals,
    RemoveApproval,
    SavedApprovals,
)
from fairlead_service.audit import audit_command
from fairlead_service.rpc.server import TenantParam


async def list_(context: ContextDep, tenant: TenantParam, command: ListApprovals) -> SavedApprovals:
    """The approvals of a project, oldest first."""
    return SavedApprovals(
        saved=await context.eventlog.approvals.get_all(tenant, command.project_id)
    )


async def remove(
    context: ContextDep, tenant: TenantParam, command: RemoveApproval
) -> ApprovalRemoved:
    """Remove an approval. Later calls ask again; calls that were permitted before stay permitted."""
    await context.eventlog.approvals.remove(tenant, command.id)
    audit_command("approval.remove", tenant, command.id)
    return ApprovalRemoved(id=command.id)
