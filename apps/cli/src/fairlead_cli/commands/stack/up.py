"""`fairlead up`: runs the whole stack on this machine until Ctrl-C."""

import argparse
import logging
import os
from pathlib import Path

from rich.markup import escape

from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import UsageError
from fairlead_cli.first_use.found_provider import FoundProvider, find_keys
from fairlead_cli.local_stack.stack_plan import StackPlan
from fairlead_cli.terminal import ConsoleLogHandler, stderr_console
from fairlead_service.config.configuration import load
from fairlead_service.process_memory import keep_memory_private


def run(args: argparse.Namespace) -> int:
    """Run until SIGINT or SIGTERM, then stop all processes in order."""
    # The environment of this process contains the keys of providers.
    keep_memory_private()
    notices = stderr_console()
    found = () if args.sim else find_keys(os.environ)
    plan = build_plan(args, Path.cwd(), os.environ.get("FAIRLEAD_CONFIG"), found)
    if plan.config is None and not args.sim:
        notices.print(f"[yellow]![/] {escape(describe_choice(found))}", soft_wrap=True)
    logging.getLogger("fairlead_cli").addHandler(ConsoleLogHandler(notices))
    if plan.config is not None:
        load(plan.config, os.environ)
    with keep_modules():
        from fairlead_cli.local_stack.foreground_stack import run_until_stopped  # noqa: PLC0415
    run_until_stopped(plan, notices, as_json=args.json)
    return 0


def describe_choice(found: tuple[FoundProvider, ...]) -> str:
    """What a stack without a file uses, and how to choose otherwise."""
    if not found:
        return (
            "no fairlead.toml and no key of a provider here: using the simulated provider (--sim);"
            " `fairlead init` also finds model servers of this machine"
        )
    first, *others = found
    preset = first.preset
    at = "" if first.is_at_usual_address else f" at {first.base_url}"
    more = "".join(f", {other.preset.key_env} is set too" for other in others)
    return (
        f"no fairlead.toml here: using {preset.name}/{preset.default}{at} with the key in"
        f" {preset.key_env}{more} (--sim simulates, `fairlead init` writes a file)"
    )


def build_plan(
    args: argparse.Namespace,
    cwd: Path,
    config_variable: str | None,
    found: tuple[FoundProvider, ...] = (),
) -> StackPlan:
    """The plan that the arguments describe. Without a file, the first provider found is used.

    Raises UsageError.
    """
    config = args.config or (Path(config_variable) if config_variable else None)
    if config is None and not args.sim and (cwd / "fairlead.toml").is_file():
        config = cwd / "fairlead.toml"
    return StackPlan(
        state=args.state,
        scale=parse_scale(args.scale),
        sim=args.sim or (config is None and not found),
        config=config,
        found=found[0] if found and config is None and not args.sim else None,
        port=args.port,
        solo=args.solo,
        nats_nodes=args.nats_nodes,
        open=args.open,
    )


def parse_scale(pairs: list[str]) -> dict[str, int]:
    """Parse pairs such as `runner=2`; the last pair of a name wins. Raises UsageError."""
    scale: dict[str, int] = {}
    for pair in pairs:
        name, equals, count = pair.partition("=")
        if not equals or not count.isdigit():
            raise UsageError(f"--scale {pair}: write it as NAME=N, for example runner=2")
        scale[name] = int(count)
    return scale
