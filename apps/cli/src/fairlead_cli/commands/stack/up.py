"""`fairlead up`: runs the whole stack on this machine until Ctrl-C."""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from fairlead_cli.embedded.access_key import console_link
from fairlead_cli.embedded.running_stack import RunningStack
from fairlead_cli.embedded.stack import Stack, StackPlan
from fairlead_cli.errors import UsageError
from fairlead_cli.first_use.found_provider import FoundProvider, find_keys
from fairlead_cli.terminal import ConsoleLogHandler, stderr_console, stdout_console
from fairlead_service.config.configuration import Config, load
from fairlead_service.process_memory import keep_memory_private
from fairlead_tools.shell.confinement import find_confinement


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
    stack = Stack(plan, progress=lambda line: notices.print(f"[dim]{escape(line)}[/]"))
    asyncio.run(_until_stopped(stack, plan, as_json=args.json))
    return 0


def describe_choice(found: tuple[FoundProvider, ...]) -> str:
    """What a stack without a file uses, and how to choose otherwise."""
    if not found:
        return (
            "no fairlead.toml and no key of a provider here: using the simulated provider (--sim)"
        )
    first, *others = found
    preset = first.preset
    at = "" if first.base_url == preset.base_url else f" at {first.base_url}"
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


async def _until_stopped(stack: Stack, plan: StackPlan, *, as_json: bool) -> None:
    task = asyncio.current_task()
    assert task is not None, "called by asyncio.run"
    signals: list[int] = []

    def on_signal(sig: int) -> None:
        signals.append(sig)
        if len(signals) == 1:
            task.cancel()
        else:
            stack.hurry()

    loop = asyncio.get_running_loop()
    for sig in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sig, on_signal, sig)
    with suppress(asyncio.CancelledError):
        async with stack.run() as running:
            _announce(running, plan, as_json=as_json)
            try:
                await asyncio.Event().wait()
            finally:
                if not as_json:
                    stderr_console().print("\n[dim]stopping (Ctrl-C again kills at once)[/]")


def _announce(running: RunningStack, plan: StackPlan, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(running.addresses()) + "\n")
        sys.stdout.flush()
        return
    _greet(stdout_console(), running, plan)


def _greet(out: Console, running: RunningStack, plan: StackPlan) -> None:
    services, config = running.services, load(running.config, os.environ)
    counts = ", ".join(
        name if len(pids_of_service) == 1 else f"{len(pids_of_service)} {name}"
        for name, pids_of_service in services.items()
    )
    link = console_link(running.state, running.http, running.token)
    out.print("\n[bold green]Fairlead is up.[/]\n")
    for name, value in (
        ("HTTP", f"[bold]{running.http}[/]   console and API"),
        ("Console", f"{escape(link)}{'' if running.token is None else '   signs in once'}"),
        ("Key", _key_line(running, plan)),
        (
            "NATS",
            f"{', '.join(running.nats_nodes)}   key {escape(str(running.local_client.nkey_file))}",
        ),
        ("Postgres", escape(running.postgres)),
        ("Services", f"{counts} (one process for all)" if plan.solo else counts),
        ("State", f"{escape(str(running.state.root))}   logs in {escape(str(running.state.logs))}"),
        ("Config", escape(str(running.config))),
        ("Model", escape(describe_model(config, os.environ))),
        ("Sandbox", escape(find_confinement(config.tools).line)),
    ):
        out.print(f"  [dim]{name:<9}[/] {value}", soft_wrap=True)
    where = "" if plan.state == Path(".fairlead") else f" --state {plan.state}"
    out.print(f'\n  Try       [bold]fairlead prompt{escape(where)} "Say hello"[/]', soft_wrap=True)
    out.print("  Stop      Ctrl-C\n")


def describe_model(config: Config, env: Mapping[str, str]) -> str:
    """The model of sessions that name none, and what it still needs."""
    ref = config.model_ref()
    if ref is None:
        return "none: set default_model in the configuration"
    key = config.provider[ref.provider_id].api_key_env
    missing = f"   {key} is not set: set it and start again" if key and not env.get(key) else ""
    return f"{ref.provider_id}/{ref.id}{missing}"


def _key_line(running: RunningStack, plan: StackPlan) -> str:
    if running.token is not None:
        return f"{escape(str(running.state.token))}   `fairlead` finds it by itself"
    if plan.open:
        return "none: everybody on this machine may call (--open)"
    return "the configuration names its own keys: pass one with --token"
