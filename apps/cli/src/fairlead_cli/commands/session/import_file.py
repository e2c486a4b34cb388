"""`fairlead import`: bring the sessions of an exported file into a deployment."""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.client import open_client
from fairlead_cli.export_file import verify_file
from fairlead_cli.terminal import stdout_console


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="what `fairlead export` wrote")
    add("--id", metavar="SESSION", help="import a copy under this new id")
    add("--origin", metavar="NAME", help="who replays into the sessions; claims those without one")
    add("--strict", action="store_true", help="refuse sessions of another origin, do not skip them")
    add("--publish", action="store_true", help="send the new events to the public feed")
    add("--check", action="store_true", help="verify and check everything, and write nothing")
    add("--json", action="store_true", help="one line of JSON, as clients get it")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    """Verify the file here first: a damaged file is not even sent."""
    verify_file(args.file)
    report = asyncio.run(_import(args))
    if args.json:
        sys.stdout.write(json.dumps(report) + "\n")
        return 0
    done = "would be imported" if args.check else "imported"
    skipped = sum(session.get("skipped", False) for session in report["sessions"])
    line = f"{report['count']} sessions {done}, {report['accepted']} new events"
    stdout_console().print(line + (f", {skipped} skipped" if skipped else ""), markup=False)
    return 0


async def _import(args: argparse.Namespace) -> dict[str, Any]:
    query = {"id": args.id, "origin": args.origin}
    flags = {name: "true" for name in ("strict", "publish", "check") if getattr(args, name)}
    named = {name: value for name, value in query.items() if value is not None}
    async with open_client(http_url(args), http_token(args)) as client:
        return await client.upload_export(args.file, named | flags)
