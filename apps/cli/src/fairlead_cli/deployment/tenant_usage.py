"""What any tenant uses of its quotas, as an operator asks for it over NATS."""

from typing import Final

from pydantic import ValidationError

from fairlead_cli.errors import CommandError
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.connect import connect_over
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.quota import QuotaLimits, TenantTotals, TenantUsageReport
from fairlead_session.execution.quota import quota_uses

TIMEOUT_S: Final = 5.0


async def load_usage(link: NatsLink, tenant: str) -> TenantUsageReport:
    """The usage that the projector knows. Raises CommandError."""
    async with connect_over(link) as eventlog:
        try:
            reply = await eventlog.requests.request(
                subjects.tenant_usage(tenant), b"{}", timeout_s=TIMEOUT_S
            )
            answer = CommandAnswer[TenantTotals].model_validate_json(reply)
        except (LogError, ValidationError) as error:
            text = f"No projector answers for {tenant}: {error}; run `fairlead doctor`"
            raise CommandError(text) from error
    if answer.data is None:
        reason = "no answer" if answer.error is None else answer.error.message
        raise CommandError(f"The projector refused the question: {reason}")
    return TenantUsageReport(
        tenant=tenant,
        quotas=quota_uses(answer.data.allowed or QuotaLimits(), answer.data),
        cost=answer.data.cost,
        tokens=answer.data.tokens,
    )
