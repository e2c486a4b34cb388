"""Asks over HTTP, for `fairlead doctor`: the gateway, a service, and the monitoring of nats-server."""

from datetime import UTC, datetime
from typing import Final

import httpx

from fairlead_cli.checks import Finding
from fairlead_cli.deployment.doctor import monitor_findings

TIMEOUT_S: Final = 5.0


async def check_durability(monitor: str) -> Finding:
    """Does a nats-server sync commits to disk?"""
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as http:
            return monitor_findings.check_durability((await http.get(f"{monitor}/varz")).json())
    except (httpx.HTTPError, ValueError):
        return Finding("sync", "warn", f"{monitor} does not answer", "set --monitor")


async def check_clock(monitor: str) -> Finding | None:
    """Has a nats-server the time of this machine?"""
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as http:
            varz = (await http.get(f"{monitor}/varz")).json()
        return monitor_findings.check_clock(varz, datetime.now(UTC))
    except (httpx.HTTPError, ValueError, KeyError):
        return None  # The check of its durability says that it does not answer.


async def check_http(url: str, path: str) -> Finding:
    """Is the process ready?"""
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as http:
            response = await http.get(f"{url}{path}")
    except httpx.HTTPError:
        return Finding("http", "fail", f"nothing answers at {url}", "run `fairlead up`")
    if response.is_success:
        return Finding("http", "ok", f"{url} is ready")
    return Finding("http", "fail", f"{url} is not ready: {response.text}", "see the gateway's log")
