"""`fairlead import`: bring the sessions of an exported file into a deployment."""

import argparse
from typing import Any

from fairlead_cli.exports.export_file import verify_file
from fairlead_cli.exports.transfer_requests import upload_export
from fairlead_cli.gateway import run_with_connection
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stdout_console
from fairlead_client.async_client.http_connection import AsyncHttpConnection


def run(args: argparse.Namespace) -> int:
    """Verify the file here first: a damaged file is not even sent."""
    verify_file(args.file)
    report = run_with_connection(args, lambda connection: _upload(connection, args))
    if args.json:
        print_json(report)
        return 0
    done = "would be imported" if args.check else "imported"
    skipped = sum(session.get("skipped", False) for session in report["sessions"])
    line = f"{report['count']} sessions {done}, {report['accepted']} new events"
    stdout_console().print(line + (f", {skipped} skipped" if skipped else ""), markup=False)
    return 0


async def _upload(connection: AsyncHttpConnection, args: argparse.Namespace) -> dict[str, Any]:
    query = {"id": args.id, "origin": args.origin}
    flags = {name: "true" for name in ("strict", "publish", "check") if getattr(args, name)}
    named = {name: value for name, value in query.items() if value is not None}
    return await upload_export(connection, args.file, named | flags)
