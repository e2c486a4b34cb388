"""Audit: one structured line and one count for every refusal, approval, purge and token change."""

import logging
from typing import Final, Literal, TypeAlias

from prometheus_client import Counter

from fairlead_schema import subjects
from fairlead_schema.errors import Forbidden, LimitReached, Refused
from fairlead_schema.ids import TenantId
from fairlead_service.rpc.caller import current_caller

log = logging.getLogger("fairlead.audit")

AuditOutcome: TypeAlias = Literal["allowed", "refused"]

AUDIT_LINES: Final = Counter(
    "fairlead_audit", "Audit lines by action and outcome.", ["action", "outcome"]
)


def audit(
    action: str,
    outcome: AuditOutcome,
    *,
    principal: str | None = None,
    tenant: TenantId | None = None,
    resource: str | None = None,
    reason: str | None = None,
) -> None:
    """Write one line. A field without a value is left out."""
    AUDIT_LINES.labels(action, outcome).inc()
    fields = {
        "action": action,
        "outcome": outcome,
        "principal": principal,
        "tenant": tenant,
        "resource": resource,
        "reason": reason,
    }
    log.info("audit", extra={key: value for key, value in fields.items() if value is not None})


def audit_command(action: str, tenant: TenantId, resource: str, reason: str | None = None) -> None:
    """Write the line of a command that was carried out for the caller of the request."""
    audit(
        action,
        "allowed",
        principal=current_caller(),
        tenant=tenant,
        resource=resource,
        reason=reason,
    )


def audit_own_client(subject: str, refused: Refused | None) -> None:
    """Write the line of a refusal to a tenant's own client over NATS.

    The gateway writes the lines of its callers. NATS itself logs a publish that it refuses.
    """
    principal = subjects.principal_of(subject)
    if principal is None or not isinstance(refused, Forbidden | LimitReached):
        return
    _root, _door, tenant, _principal, verb = subject.split(".", 4)
    audit(
        verb, "refused", principal=principal, tenant=tenant, resource=subject, reason=str(refused)
    )
