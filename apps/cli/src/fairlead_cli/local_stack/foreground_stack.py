"""Runs a stack in the foreground until Ctrl-C, and says where it can be reached."""

import asyncio
import json
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
from fairlead_cli.embedded.stack import Stack
from fairlead_cli.local_stack.stack_plan import StackPlan
from fairlead_cli.terminal import stderr_console, stdout_console
from fairlead_service.config.configuration import Config, load
from fairlead_tools.shell.confinement import find_confinement


def run_until_stopped(plan: StackPlan, notices: Console, *, as_json: bool) -> None:
    """Run until SIGINT or SIGTERM, then stop all processes in order. Raises CommandError, ConfigError."""
    stack = Stack(plan, progress=lambda line: notices.print(f"[dim]{escape(line)}[/]"))
    asyncio.run(_until_stopped(stack, plan, as_json=as_json))


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
    missing = (
        f"   {key} is not set: set it and start again"
        if key and not env.get(key, "").strip()
        else ""
    )
    return f"{ref.provider_id}/{ref.id}{missing}"


def _key_line(running: RunningStack, plan: StackPlan) -> str:
    if running.token is not None:
        return f"{escape(str(running.state.token))}   `fairlead` finds it by itself"
    if plan.open:
        return "none: everybody on this machine may call (--open)"
    return "the configuration names its own keys: pass one with --token"
