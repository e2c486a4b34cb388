"""Shows what is stored of a session or a tenant, asks for its name, and removes it."""

import argparse
import sys

from fairlead_cli.errors import CommandError
from fairlead_cli.purge.plan import PurgePlan, plan_session, plan_tenant
from fairlead_cli.purge.purge import purge
from fairlead_cli.terminal import stderr_console
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import open_ports
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.registers.log_status import JetStreamLogStatus
from fairlead_schema.subjects import Address


async def purge_confirmed(args: argparse.Namespace, link: NatsLink) -> PurgePlan:
    """Count what is stored, and remove it if somebody types its name. Raises CommandError and LogError."""
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
