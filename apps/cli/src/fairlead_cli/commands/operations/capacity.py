"""`fairlead capacity`: computes the cores, memory and disk that so many agents need."""

import argparse
from dataclasses import asdict

from fairlead_cli.capacity.agent_load import AgentLoad, Plan, plan
from fairlead_cli.capacity.figures import MEASURED
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stdout_console, table


def run(args: argparse.Namespace) -> int:
    """Print what the workload needs."""
    workload = AgentLoad(
        agents=args.agents,
        step_s=args.step_s,
        steps_per_prompt=args.steps_per_prompt,
        fragments_per_step=args.fragments,
        text_bytes_per_step=args.text_bytes,
        watchers=args.watchers,
        hours_per_day=args.hours,
        days=args.days,
        feed_days=args.feed_days,
        replicas=args.replicas,
    )
    needed = plan(workload, MEASURED)
    if args.json:
        print_json({"workload": asdict(workload), "plan": asdict(needed)})
    else:
        _show(needed)
    return 0


def _show(needed: Plan) -> None:
    grid = table("part", "cores", "processes", "memory, GB")
    for name, need in needed.needs.items():
        memory = f"{need.memory_gb:.1f}" if need.memory_gb else ""
        grid.add_row(name, f"{need.cores:.1f}", str(need.processes), memory)
    out = stdout_console()
    out.print(grid, "", sep="\n")
    out.print(f"{needed.commits_per_s:,.0f} commits a second, {needed.nats_nodes} nats-servers")
    out.print(
        f"disk of each nats-server: {needed.log_gb:,.0f} GB for the log,"
        f" {needed.feed_gb:,.0f} GB for the feed; of Postgres: {needed.postgres_gb:,.0f} GB",
        soft_wrap=True,
    )
    out.print("The work of tools comes on top. Measured numbers: docs/operations/capacity.md")
