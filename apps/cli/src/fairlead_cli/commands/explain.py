"""`fairlead explain`: why a session moves or does not, in one sentence and as values."""

import argparse
import asyncio
import json
import sys
from datetime import UTC, datetime
from typing import Any

from fairlead_cli.addresses import add_http, http_url
from fairlead_cli.client import connected
from fairlead_cli.terminal import answers


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="SESSION")
    add("--json", action="store_true", help="one line of JSON, as clients get it")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    found = asyncio.run(_explained(args))
    if args.json:
        sys.stdout.write(json.dumps(found) + "\n")
        return 0
    out = answers()
    out.print(str(found["reason"]), markup=False)
    for line in structure(found):
        out.print(f"  {line}", style="dim", markup=False)
    return 0


def structure(found: dict[str, Any]) -> list[str]:
    """What an explanation says besides its sentence, a line each."""
    return [
        f"{key.replace('_', ' ')}: {_shown(key, value)}"
        for key, value in found.items()
        if key != "reason"
    ]


async def _explained(args: argparse.Namespace) -> dict[str, Any]:
    async with connected(http_url(args)) as client:
        return await client.explain(args.session)


def _shown(key: str, value: object) -> str:
    if key == "since" and isinstance(value, int):
        return f"{datetime.fromtimestamp(value / 1000, UTC).astimezone():%Y-%m-%d %H:%M:%S}"
    if isinstance(value, list):
        return ", ".join(_named(one) for one in value)
    return str(value)


def _named(one: object) -> str:
    if isinstance(one, dict) and {"what", "id"} <= one.keys():
        return f"{one['what']} ({one['id']})"
    return str(one)
