"""`fairlead pool`: list the pools of tool workers, or move the sessions of one to others."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import Final

from fairlead_cli.addresses import effective_config
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.embedded.state_directory import load_addresses
from fairlead_cli.errors import UsageError
from fairlead_cli.json_output import print_json
from fairlead_cli.operator_link import operator_link
from fairlead_cli.terminal import stderr_console, stdout_console, table
from fairlead_schema.subjects import Address
from fairlead_schema.tools.pool_rules import PoolRules
from fairlead_service.config.configuration import Config, load

LINK: Final = "fairlead-pool"


def run(args: argparse.Namespace) -> int:
    """List the pools, or drain one."""
    config = effective_config(args)
    pools = _rules(args, config)
    return asyncio.run((_list if args.action == "list" else _drain)(args, config, pools))


def _rules(args: argparse.Namespace, config: Config) -> PoolRules:
    """The rules in force: of the configuration, else of the local stack."""
    local = load_addresses(args.state).get("config")
    if args.config is None and local is not None and "FAIRLEAD_CONFIG" not in os.environ:
        return load(Path(str(local)), {}).pools
    return config.pools


async def _list(args: argparse.Namespace, config: Config, pools: PoolRules) -> int:
    async with operator_link(config.nats.address("operator"), LINK) as link:
        with keep_modules():
            from fairlead_cli.pools.overview import read_pools  # noqa: PLC0415
        states = await read_pools(link, config, pools)
    if args.json:
        for state in states:
            fields = state._asdict()
            print_json({"oldestAge": fields.pop("oldest_age_s"), **fields})
        return 0
    grid = table("POOL", "WORKERS", "WAITING", "OLDEST", "SESSIONS", "")
    for pool, workers, waiting, age_s, sessions, note in states:
        grid.add_row(pool, str(workers), str(waiting), f"{age_s:.0f} s", str(sessions), note)
    stdout_console().print(grid)
    return 0


async def _drain(args: argparse.Namespace, config: Config, pools: PoolRules) -> int:
    """Exit code 1 says that sessions are left."""
    for name in (args.name, args.to or args.name):
        if name not in pools.names:
            raise UsageError(f"no pool is called {name}: the pools are {', '.join(pools.names)}")
    if args.to == args.name:
        raise UsageError("--to names the pool that is drained: choose another one")

    def show(at: Address, pool: str) -> None:
        _show(args, at, "pool", pool)

    async with operator_link(config.nats.address("operator"), LINK) as link:
        with keep_modules():
            from fairlead_cli.pools.drain import PoolDrain  # noqa: PLC0415
            from fairlead_cli.pools.drain_progress import DrainProgress  # noqa: PLC0415
        drain = PoolDrain(config, pools, args.name, args.to, now=args.now)
        report = await drain.run(link, args.wait, show, None if args.json else DrainProgress())
    left = report.busy | report.refused
    for at, reason in left.items():
        _show(args, at, "left", reason)
    if not args.json:
        stderr_console().print(f"{len(report.moved)} moved, {len(left)} left", style="dim")
    return 1 if left else 0


def _show(args: argparse.Namespace, at: Address, name: str, value: str) -> None:
    if args.json:
        print_json({"tenant": at.tenant, "session": at.session_id, name: value})
    else:
        line = f"{at.tenant} {at.session_id} {name}: {value}"
        stdout_console().print(line, markup=False, soft_wrap=True)
