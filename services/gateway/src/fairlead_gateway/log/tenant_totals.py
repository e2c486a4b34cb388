"""Asks the projector what a tenant or one of its principals has and uses."""

from pydantic_core import to_json

from fairlead_eventlog.errors import LogError
from fairlead_gateway.runtime import Runtime
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.quota import AskTenantTotals, TenantTotals
from fairlead_schema.errors import Refused, ServiceUnavailable
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import TenantId


async def load_totals(
    runtime: Runtime,
    tenant: TenantId,
    principal: PrincipalName | None = None,
    *,
    timeout_s: float,
) -> TenantTotals:
    """The totals of a tenant, or of one principal. Raises ServiceUnavailable while the projector does not answer."""
    requests, subject = runtime.nats().requests, subjects.tenant_usage(tenant)
    question = to_json(AskTenantTotals(principal=principal).wire())
    try:
        reply = await requests.request(subject, question, timeout_s=timeout_s)
    except LogError as error:
        text = "The projector did not answer: try again when it runs"
        raise ServiceUnavailable(text, service="projector") from error
    result = CommandAnswer[TenantTotals].model_validate_json(reply)
    if result.error is not None:
        raise Refused.from_wire(result.error)
    assert result.data is not None, "a question for totals is answered with data or an error"
    return result.data
