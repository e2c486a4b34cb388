"""`fairlead purge`: remove everything that is stored of a session or of a tenant."""

import argparse
import asyncio

from fairlead_cli.addresses import effective_config
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import UsageError
from fairlead_cli.json_output import print_json
from fairlead_cli.operator_link import operator_link
from fairlead_cli.terminal import stdout_console
from fairlead_schema.identity.nats_address import NatsAddress


def run(args: argparse.Namespace) -> int:
    """Show what is stored, ask for its name, and remove it. A second run goes on after a crash."""
    if args.all == (args.session is not None) or (args.all and args.tree):
        raise UsageError("name one session, perhaps with --tree, or say --all with --tenant")
    if args.all and args.tenant is None:
        raise UsageError("--all needs --tenant NAME: no tenant is purged by default")
    return asyncio.run(_purge(args, effective_config(args).nats.address("operator")))


async def _purge(args: argparse.Namespace, address: NatsAddress) -> int:
    async with operator_link(address, "fairlead-purge") as link:
        with keep_modules():
            from fairlead_cli.purge.confirmed_purge import purge_confirmed  # noqa: PLC0415
        plan = await purge_confirmed(args, link)
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
