"""`fairlead acp`: let an editor drive sessions, over standard input and output."""

import argparse
import asyncio
import logging
import sys
from importlib.metadata import version
from typing import cast

from acp import Agent, run_agent
from acp.stdio import stdio_streams

from fairlead_cli.acp.agent import FairleadAgent
from fairlead_cli.acp.stdio_transport import StdioTransport
from fairlead_cli.errors import CommandError
from fairlead_client import AsyncFairlead


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
    reader, writer = await stdio_streams()
    async with AsyncFairlead(args.http, token=args.token, state=args.state) as fairlead:
        agent = FairleadAgent(fairlead, version("fairlead"))
        try:
            transport = StdioTransport(reader, writer)
            await run_agent(cast("Agent", agent), transport, use_unstable_protocol=True)
        finally:
            await agent.aclose()
