"""`fairlead import`: bring the sessions of an exported file into a deployment."""

import argparse
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx

from fairlead_cli.export_file import verify_file
from fairlead_cli.gateway import run_with_connection
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stdout_console
from fairlead_client.answers.answer_models import data_of
from fairlead_client.async_client.http_connection import CONNECT_S, TIMEOUT_S, AsyncHttpConnection

PIECE_BYTES: Final = 256 * 1024
# The answer comes when everything is written.
_TIMEOUT: Final = httpx.Timeout(TIMEOUT_S, connect=CONNECT_S, read=None)


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
    answer = await connection.request(
        "POST",
        "/api/session/import",
        is_repeatable=False,
        params=named | flags,
        content=_read_pieces(args.file),
        headers={"content-type": "application/octet-stream"},
        timeout=_TIMEOUT,
    )
    report: dict[str, Any] = data_of(answer)
    return report


async def _read_pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as pieces:
        while piece := pieces.read(PIECE_BYTES):
            yield piece
