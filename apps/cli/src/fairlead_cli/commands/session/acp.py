"""`fairlead acp`: let an editor drive sessions, over standard input and output."""

import argparse
import asyncio
import logging
import sys
from typing import cast

from fairlead_cli.addresses import add_http
from fairlead_cli.errors import CommandError


def configure(parser: argparse.ArgumentParser) -> None:
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    # Standard output belongs to the protocol.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    try:
        asyncio.run(_serve(args))
    except ValueError as error:
        raise CommandError(f"standard input and output must be pipes: {error}") from error
    return 0


async def _serve(args: argparse.Namespace) -> None:
    """Serve one editor until it closes its end. Its sessions go on."""
    from importlib.metadata import version  # noqa: PLC0415 - the command line starts fast

    from acp import Agent, run_agent  # noqa: PLC0415 - half a second of imports
    from acp.stdio import stdio_streams  # noqa: PLC0415

    from fairlead_cli.acp.agent import FairleadAgent  # noqa: PLC0415
    from fairlead_cli.acp.stdio_transport import StdioTransport  # noqa: PLC0415
    from fairlead_client import AsyncFairlead  # noqa: PLC0415

    reader, writer = await stdio_streams()
    async with AsyncFairlead(args.http, token=args.token, state=args.state) as fairlead:
        agent = FairleadAgent(fairlead, version("fairlead"))
        try:
            transport = StdioTransport(reader, writer)
            await run_agent(cast("Agent", agent), transport, use_unstable_protocol=True)
        finally:
            await agent.aclose()
