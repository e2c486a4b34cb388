"""Who leads what in the cluster of a running stack, as its monitors tell."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx

from fairlead_cli.embedded.running_stack import RunningStack

META: Final = "meta"
"""The role of the node that decides where streams are."""
WAIT_S: Final = 60.0
ASK_S: Final = 1.0


async def find_leader(up: RunningStack, role: str) -> int:
    """The node that leads a stream, or the cluster for the role `meta`. Waits for an election."""
    async with asyncio.timeout(WAIT_S):
        while True:
            async for report in _reports(up):
                leader = _leader(report, role)
                if leader:
                    return int(leader.rpartition("-")[2])
            await asyncio.sleep(0.1)


async def wait_until_whole(up: RunningStack) -> None:
    """Wait until every node runs and has caught up with all its streams."""
    async with asyncio.timeout(WAIT_S):
        while True:
            reasons = [await p.why_not_ready() for p in up.processes if p.name == "nats"]
            if not any(reasons):
                return
            await asyncio.sleep(0.1)


async def _reports(up: RunningStack) -> AsyncIterator[dict[str, Any]]:
    """What each node says that answers. A paused node is left out."""
    async with httpx.AsyncClient(timeout=ASK_S, trust_env=False) as http:
        for monitor in up.monitors:
            try:
                response = await http.get(f"{monitor}/jsz?accounts=true&streams=true")
                yield response.json()
            except (httpx.HTTPError, ValueError):
                continue


def _leader(report: dict[str, Any], role: str) -> str | None:
    if role == META:
        return (report.get("meta_cluster") or {}).get("leader")
    for account in report.get("account_details") or ():
        for stream in account.get("stream_detail") or ():
            if stream["name"] == role:
                return (stream.get("cluster") or {}).get("leader")
    return None
