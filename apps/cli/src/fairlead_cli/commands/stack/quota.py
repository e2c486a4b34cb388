"""`fairlead quota`: what a tenant and the caller use of each of their quotas."""

import argparse
import asyncio

from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.json_output import print_json
from fairlead_cli.operator_link import operator_link
from fairlead_cli.terminal import stdout_console, table
from fairlead_client.answers.answer_models import data_of, read_as
from fairlead_schema.commands.quota import QuotaUse, TenantUsageReport

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
    with keep_modules():
        from fairlead_cli.gateway import gateway_of, open_client  # noqa: PLC0415
    async with open_client(gateway_of(args)) as client:
        usage = await client.request("GET", "/api/tenant/usage")
        return read_as(TenantUsageReport, data_of(usage))


async def _load_tenant(args: argparse.Namespace) -> TenantUsageReport:
    # Only operators ask for any tenant, and over NATS.
    from fairlead_cli.addresses import effective_config  # noqa: PLC0415

    address = effective_config(args).nats.address("operator")
    async with operator_link(address, "fairlead-quota") as link:
        from fairlead_cli.deployment.tenant_usage import load_usage  # noqa: PLC0415

        return await load_usage(link, args.tenant)
