"""A second gateway beside the one of a stack: another process, with another port."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import httpx

from fairlead_cli.embedded import child_process
from fairlead_cli.embedded.ports import LOOPBACK, free_ports
from fairlead_testing.stack import TIMEOUT_S, Stack


@asynccontextmanager
async def second_gateway(up: Stack) -> AsyncIterator[httpx.AsyncClient]:
    """A client of another gateway of the same stack, for the length of a block."""
    port, health = free_ports(2)
    first = up.up.process("gateway").spec
    ports = {"FAIRLEAD_GATEWAY_PORT": str(port), "FAIRLEAD_HEALTH_PORT": str(health)}
    spec = replace(
        first,
        env={**first.env, **ports},
        log=first.log.with_name("second-gateway.log"),
    )
    process = await child_process.spawn(spec)
    try:
        address = f"http://{LOOPBACK}:{port}"
        async with httpx.AsyncClient(
            base_url=address, timeout=30.0, trust_env=False, headers=up.http.headers
        ) as http:
            await _wait_until_ready(f"http://{LOOPBACK}:{health}/readyz", http)
            yield http
    finally:
        await child_process.stop(process, spec, hurry=asyncio.Event())


async def _wait_until_ready(address: str, http: httpx.AsyncClient) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            with suppress(httpx.HTTPError):
                if (await http.get(address)).status_code == httpx.codes.OK:
                    return
            await asyncio.sleep(0.05)
