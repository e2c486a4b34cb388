"""`GET /api/tenant/usage`: the quotas of the caller and its tenant, and what is used of each."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.tenant_totals import load_totals
from fairlead_schema.commands.quota import PrincipalUsageReport, TenantUsageReport
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.model import Model
from fairlead_session.execution.quota import quota_uses


class TenantUsageAnswer(Model):
    data: TenantUsageReport


async def _read_usage(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    tenant, runtime, name = request.tenant, request.runtime, request.principal.name
    settings, timeout_s = runtime.settings, runtime.settings.request_timeout_s
    totals = await load_totals(runtime, tenant, timeout_s=timeout_s)
    own = await load_totals(runtime, tenant, name, timeout_s=timeout_s)
    share = PrincipalUsageReport(
        name=name, quotas=quota_uses(settings.principal_quotas(tenant), own)
    )
    report = TenantUsageReport(
        tenant=tenant,
        quotas=quota_uses(settings.quotas(tenant), totals),
        cost=totals.cost,
        tokens=totals.tokens,
        principal=share,
    )
    return answer(TenantUsageAnswer(data=report))


READ = Operation(
    id="tenant.usage",
    method="GET",
    path="/api/tenant/usage",
    scope="session:read",
    summary="The quotas of the tenant and of the caller, and what is used of each.",
    respond=_read_usage,
    answer=TenantUsageAnswer,
    errors=(ServiceUnavailable,),
)
