"""The nats-servers of a local state alone, without any service, for the length of a restore."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fairlead_cli.embedded import state_directory as directory
from fairlead_cli.embedded.nats_auth import key_directory
from fairlead_cli.embedded.nats_cluster import plan_cluster
from fairlead_cli.embedded.supervisor import run_together, stop_all, wait_all_ready
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_service.config.configuration import Config


@asynccontextmanager
async def run_servers(state: Path, nodes: int, config: Config) -> AsyncIterator[NatsAddress]:
    """Run the servers; the answer is their address for an operator. Raises CommandError."""
    place = directory.prepare_state(state)
    with directory.lock_state(place):
        cluster = plan_cluster(place, nodes)
        servers = cluster.processes(config)
        try:
            await run_together(server.start() for server in servers)
            await wait_all_ready(servers, lambda _line: None)
            yield key_directory(place).service_address(cluster.url, "operator")
        finally:
            await stop_all(servers)
