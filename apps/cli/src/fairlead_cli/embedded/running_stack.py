"""A stack that is up: its addresses and its processes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead_cli.embedded.nats_auth import key_directory
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.embedded.supervisor import START_TIMEOUT_S, SupervisedProcess, wait_all_ready
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.identity.principal import LOCAL


@dataclass(frozen=True, slots=True)
class RunningStack:
    """A stack that is up: its addresses and its processes."""

    http: str
    ops: str
    token: str | None
    """The key of the owner; None if the stack is open, or its configuration names its own keys."""
    nats_nodes: tuple[str, ...]
    monitors: tuple[str, ...]
    # As the owner of the read models; no service has this role.
    postgres: str
    postgres_admin: str
    config: Path
    state: StateDirectory
    processes: tuple[SupervisedProcess, ...]

    @property
    def nats(self) -> str:
        """The address of the first node. A client that connects to it learns of the others."""
        return self.nats_nodes[0]

    @property
    def monitor(self) -> str:
        """The monitoring address of the first node."""
        return self.monitors[0]

    @property
    def services(self) -> dict[str, list[int]]:
        """The pids of each service, by name."""
        pids: dict[str, list[int]] = {}
        for process in self.processes:
            if process.name not in {"nats", "postgres"} and process.pid is not None:
                pids.setdefault(process.name, []).append(process.pid)
        return pids

    @property
    def http_with_key(self) -> str:
        """The HTTP address with the key of the owner as its password."""
        scheme, _, address = self.http.partition("://")
        return self.http if self.token is None else f"{scheme}://opencode:{self.token}@{address}"

    def process(self, name: str, index: int = 0) -> SupervisedProcess:
        """One process, servers included (`nats`, `postgres`, `sim`)."""
        return next(p for p in self.processes if (p.name, p.index) == (name, index))

    def pid(self, name: str, index: int = 0) -> int | None:
        """The pid of a process; None while it is down."""
        return self.process(name, index).pid

    def kill(self, name: str, index: int = 0, sig: int = 9) -> None:
        """Send a signal to one process. The supervisor restarts a process that dies."""
        self.process(name, index).kill(sig)

    def log_path(self, name: str, index: int = 0) -> Path:
        return self.state.log_path(name, index)

    async def wait_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until every process is ready again. Raises ProcessFailed."""
        await wait_all_ready(self.processes, lambda _line: None, timeout_s=timeout_s)

    @property
    def nats_keys(self) -> KeyDirectory:
        """The keys of every identity of this stack."""
        return key_directory(self.state)

    @property
    def operator(self) -> NatsAddress:
        """NATS for commands on this machine that may read and change everything."""
        return self.nats_keys.service_address(",".join(self.nats_nodes), "operator")

    @property
    def local_client(self) -> NatsAddress:
        """NATS for a client of the default tenant, with every scope of the tenant."""
        return self.nats_keys.principal_address(",".join(self.nats_nodes), LOCAL)

    def addresses(self) -> dict[str, Any]:
        """The addresses that `up --json` prints."""
        return {
            "http": self.http,
            **({} if self.token is None else {"token": self.token}),
            "nats": self.nats,
            "nats_nodes": list(self.nats_nodes),
            "nats_nkey": self.local_client.nkey_file,
            "nats_inbox": self.local_client.inbox_prefix,
            "postgres": self.postgres,
            "services": self.services,
        }

    def run_record(self) -> dict[str, Any]:
        """The addresses that other commands on this machine load from the state directory."""
        record = self.addresses() | {
            "ops": self.ops,
            "monitor": self.monitor,
            "monitors": list(self.monitors),
            "config": str(self.config),
            "operator_nkey": self.operator.nkey_file,
        }
        # The key has a file of its own.
        record.pop("token", None)
        return record
