"""`fairlead purge`: remove everything that is stored of a session or of a tenant."""

import argparse
import asyncio
import sys

from fairlead_cli.addresses import effective_config
from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.json_output import print_json
from fairlead_cli.purge.plan import PurgePlan, plan_session, plan_tenant
from fairlead_cli.purge.purge import purge
from fairlead_cli.terminal import stderr_console, stdout_console
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import open_link, open_ports
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.registers.log_status import JetStreamLogStatus
from fairlead_schema.subjects import Address


def run(args: argparse.Namespace) -> int:
    """Show what is stored, ask for its name, and remove it. A second run goes on after a crash."""
    if args.all == (args.session is not None) or (args.all and args.tree):
        raise UsageError("name one session, perhaps with --tree, or say --all with --tenant")
    if args.all and args.tenant is None:
        raise UsageError("--all needs --tenant NAME: no tenant is purged by default")
    plan = asyncio.run(_run(args))
    if args.json:
        print_json(
            {
                "tenant": plan.tenant,
                "sessions": len(plan.sessions),
                "purged": 0 if args.dry_run else plan.alive,
                "messages": dict(sorted(plan.messages.items())),
            }
        )
    elif not args.dry_run:
        text = f"{len(plan.sessions)} sessions of tenant {plan.tenant} are purged"
        stdout_console().print(text, markup=False)
    return 0


async def _run(args: argparse.Namespace) -> PurgePlan:
    address = effective_config(args).nats.address("operator")
    async with open_link(address, name="fairlead-purge") as link:
        eventlog = open_ports(link, JetStreamLogStatus(link))
        plan = await _plan(args, link, eventlog)
        if not args.json:
            _show(plan)
        if args.dry_run:
            return plan
        _confirm(args, plan)
        notes = stderr_console()

        def progress(line: str) -> None:
            if not args.json:
                notes.print(line, style="dim", markup=False)

        await purge(link, eventlog, plan, wait_s=args.wait, progress=progress)
        return plan


async def _plan(args: argparse.Namespace, link: NatsLink, eventlog: EventLog) -> PurgePlan:
    if args.all:
        return await plan_tenant(link, eventlog, args.tenant)
    at = Address(args.tenant or "default", args.session)
    return await plan_session(link, eventlog, at, tree=args.tree)


def _show(plan: PurgePlan) -> None:
    notes = stderr_console()
    notes.print(f"{len(plan.sessions)} sessions, {plan.alive} of them not purged yet", markup=False)
    for stream, count in sorted(plan.messages.items()):
        if count:
            notes.print(f"  {stream}: {count} messages", markup=False)


def _confirm(args: argparse.Namespace, plan: PurgePlan) -> None:
    """Nothing brings a purged session back, so somebody types its name. Raises CommandError."""
    typed = args.confirm
    if typed is None and not args.json and sys.stdin.isatty():
        stderr_console().print(f"type {plan.word} to remove all of this for ever:", markup=False)
        typed = sys.stdin.readline().strip()
    if typed != plan.word:
        raise CommandError(
            f"nothing was removed: confirm with --confirm {plan.word}, or look with --dry-run"
        )
