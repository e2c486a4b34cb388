"""Serves one editor over standard input and output."""

from importlib.metadata import version
from typing import cast

from acp import Agent, run_agent
from acp.stdio import stdio_streams

from fairlead_cli.acp.agent import FairleadAgent
from fairlead_cli.acp.stdio_transport import StdioTransport
from fairlead_client.local_stack import Gateway


async def serve_editor(gateway: Gateway) -> None:
    """Serve one editor until it closes its end. Its sessions go on. Raises ValueError without pipes."""
    reader, writer = await stdio_streams()
    agent = FairleadAgent(gateway, version("fairlead"))
    try:
        transport = StdioTransport(reader, writer)
        await run_agent(cast("Agent", agent), transport, use_unstable_protocol=True)
    finally:
        await agent.aclose()
