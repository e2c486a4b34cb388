"""`fairlead explain`: why a session works or rests, in one sentence and as values."""

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairlead_cli.embedded.state_directory import load_addresses
from fairlead_cli.gateway import gateway_of, run_with_client
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stdout_console


def run(args: argparse.Namespace) -> int:
    explanation = run_with_client(args, lambda client: client.explain(args.session))
    if args.json:
        print_json(explanation)
        return 0
    out = stdout_console()
    out.print(str(explanation.get("reason", "The server does not say why.")), markup=False)
    for line in (*detail_lines(explanation), *_sandbox_lines(args)):
        out.print(f"  {line}", style="dim", markup=False)
    return 0


def _sandbox_lines(args: argparse.Namespace) -> list[str]:
    """What confines the commands of a local stack. Of another machine this command knows nothing."""
    local = load_addresses(args.state)
    if local.get("http") != gateway_of(args).url or not local.get("config"):
        return []
    # Only for a local stack: the configuration and the sandbox take long to load.
    from fairlead_cli.deployment.sandbox_line import sandbox_line  # noqa: PLC0415

    return [sandbox_line(Path(local["config"]), os.environ)]


def detail_lines(explanation: dict[str, Any]) -> list[str]:
    """The values of an explanation besides its sentence, a line each."""
    return [
        f"{key.replace('_', ' ')}: {_format_value(key, value)}"
        for key, value in explanation.items()
        if key != "reason"
    ]


def _format_value(key: str, value: object) -> str:
    if key == "since" and isinstance(value, int):
        return f"{datetime.fromtimestamp(value / 1000, UTC).astimezone():%Y-%m-%d %H:%M:%S}"
    if isinstance(value, list):
        return ", ".join(_format_item(item) for item in value)
    return str(value)


def _format_item(item: object) -> str:
    if isinstance(item, dict) and {"what", "id"} <= item.keys():
        return f"{item['what']} ({item['id']})"
    return str(item)
