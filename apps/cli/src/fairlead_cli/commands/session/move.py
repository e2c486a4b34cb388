"""`fairlead move`: let a session work in another directory, or let another pool serve it."""

import argparse
from pathlib import Path
from typing import Any

from fairlead_cli.errors import UsageError
from fairlead_cli.gateway import run_with_client
from fairlead_cli.outcome import report
from fairlead_client import AsyncFairlead


def run(args: argparse.Namespace) -> int:
    """Move the session. What runs at the old place is interrupted."""
    if args.directory is None and args.pool is None:
        raise UsageError("name --directory, --pool, or both")
    body: dict[str, Any] = {}
    if args.directory is not None:
        body["location"] = {"directory": str(Path(args.directory).absolute())}
    if args.pool is not None:
        body["pool"] = args.pool
    if args.changes:
        body["moveChanges"] = True

    async def move(client: AsyncFairlead) -> object:
        return await client.request("POST", f"/api/session/{args.session}/move", json=body)

    run_with_client(args, move)
    return report(args, f"Moved: {args.session}", session=args.session, **body)
