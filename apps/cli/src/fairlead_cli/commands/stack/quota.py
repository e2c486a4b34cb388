"""`fairlead quota`: what a tenant and the caller use of each of their quotas."""

import argparse
import asyncio

from pydantic import ValidationError

from fairlead_cli.addresses import effective_config
from fairlead_cli.errors import CommandError
from fairlead_cli.gateway import gateway_of, open_client
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stdout_console, table
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.connect import connect
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.quota import QuotaLimits, QuotaUse, TenantTotals, TenantUsageReport
from fairlead_session.execution.quota import quota_uses

TIMEOUT_S = 5.0
# As in `[quota.principal]`.
PRINCIPAL = "principal."


def run(args: argparse.Namespace) -> int:
    """Show every quota. Without `--tenant` the gateway answers for the caller's own tenant."""
    report = asyncio.run(_load_own(args) if args.tenant is None else _load_tenant(args))
    if args.json:
        print_json(report.wire())
        return 0
    grid = table("QUOTA", "USED", "ALLOWED", "")
    for name, use in named_uses(report):
        allowed = "no limit" if use.allowed is None else f"{use.allowed:,}"
        grid.add_row(name, f"{use.used:,}", allowed, percent(use))
    out = stdout_console()
    out.print(grid)
    cost = f"{report.tenant}: ${report.cost:.4f} and {report.tokens:,} tokens so far"
    out.print(cost, style="dim", markup=False)
    if report.principal is not None:
        text = f"{PRINCIPAL}*: the sessions that {report.principal.name} created"
        out.print(text, style="dim", markup=False)
    return 0


def named_uses(report: TenantUsageReport) -> list[tuple[str, QuotaUse]]:
    """Every quota with its name as in `[quota]`: first the tenant's, then the caller's own."""
    own = () if report.principal is None else report.principal.quotas
    named: list[tuple[str, QuotaUse]] = [(use.quota, use) for use in report.quotas]
    return named + [(f"{PRINCIPAL}{use.quota}", use) for use in own]


def percent(use: QuotaUse) -> str:
    """The used part of a quota; empty without a limit."""
    if use.allowed is None:
        return ""
    return "reached" if use.used >= use.allowed else f"{use.used * 100 // use.allowed} %"


async def _load_own(args: argparse.Namespace) -> TenantUsageReport:
    async with open_client(gateway_of(args)) as client:
        usage = await client.request("GET", "/api/tenant/usage")
    return TenantUsageReport.model_validate(usage["data"])


async def _load_tenant(args: argparse.Namespace) -> TenantUsageReport:
    config, tenant = effective_config(args), args.tenant
    async with connect(config.nats.address("operator"), name="fairlead-quota") as eventlog:
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
