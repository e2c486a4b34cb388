"""The whole stack: servers, streams, services; started in order, kept alive, stopped in order."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fairlead_cli.embedded import nats, postgres, services
from fairlead_cli.embedded import state as directory
from fairlead_cli.embedded.configuration import Chosen, choose
from fairlead_cli.embedded.ports import LOOPBACK, claim, free_ports
from fairlead_cli.embedded.state import State
from fairlead_cli.embedded.supervisor import (
    POLL_S,
    START_TIMEOUT_S,
    Kept,
    Progress,
    all_ready,
    stop_all,
    together,
)
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.provision import provision
from fairlead_service.config.configuration import Config

PROVISION_TRIES: Final = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, and where."""

    state: Path
    scale: Mapping[str, int] = field(default_factory=dict)
    sim: bool = False
    relaxed: bool = False
    config: Path | None = None
    # None: as the configuration says. 0: any free port.
    port: int | None = None
    cwd: Path = field(default_factory=Path.cwd)


@dataclass(frozen=True, slots=True)
class Running:
    """A stack that is up: its addresses and its processes."""

    http: str
    nats: str
    monitor: str
    postgres: str
    config: Path
    state: State
    processes: tuple[Kept, ...]

    @property
    def services(self) -> dict[str, list[int]]:
        """The pids of each service, by name."""
        found: dict[str, list[int]] = {}
        for process in self.processes:
            if process.name not in {"nats", "postgres"} and process.pid is not None:
                found.setdefault(process.name, []).append(process.pid)
        return found

    def process(self, name: str, index: int = 0) -> Kept:
        """One process, servers included (`nats`, `postgres`, `sim`)."""
        return next(p for p in self.processes if (p.name, p.index) == (name, index))

    def pid(self, name: str, index: int = 0) -> int | None:
        """Its pid, None while it is down."""
        return self.process(name, index).pid

    def kill(self, name: str, index: int = 0, sig: int = 9) -> None:
        """Send one process a signal. What dies is started again."""
        self.process(name, index).kill(sig)

    def log_path(self, name: str, index: int = 0) -> Path:
        return self.state.log_path(name, index)

    async def ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until every process is ready again. Raises ProcessFailed."""
        await all_ready(self.processes, lambda _line: None, timeout_s=timeout_s)

    def addresses(self) -> dict[str, Any]:
        """What other programs need to know."""
        return {
            "http": self.http,
            "nats": self.nats,
            "postgres": self.postgres,
            "services": self.services,
        }

    def noted(self) -> dict[str, Any]:
        """What other commands on this machine look up."""
        return self.addresses() | {"monitor": self.monitor, "config": str(self.config)}


class Stack:
    """Starts a plan and stops it."""

    def __init__(self, plan: Plan, *, progress: Progress = lambda _line: None) -> None:
        self._plan = plan
        self._progress = progress
        self._servers: list[Kept] = []
        self._services: list[Kept] = []

    def hurry(self) -> None:
        """Stop without waiting for anybody's grace time."""
        for process in (*self._services, *self._servers):
            process.hurry()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Running]:
        """Up while the block runs. Raises CommandError, ConfigError."""
        services.checked_scale(self._plan.scale)
        state = directory.prepare(self._plan.state)
        with directory.locked(state):
            directory.forget(state)
            try:
                running = await self._start(state)
                directory.remember(state, running.noted())
                yield running
            finally:
                directory.forget(state)
                await stop_all(self._services)
                await stop_all(self._servers)

    async def _start(self, state: State) -> Running:
        chosen = choose(
            state.config,
            given=self._plan.config,
            sim=self._plan.sim or self._plan.config is None,
            env=os.environ,
            cwd=self._plan.cwd,
        )
        wanted = chosen.config.gateway.port if self._plan.port is None else self._plan.port
        http_port = claim(wanted, "HTTP", "--port")
        server, database = await self._start_servers(state, chosen)
        around = services.Surroundings(
            config=chosen.path,
            nats=server.url,
            postgres=database.dsn,
            cwd=self._plan.cwd,
            grace_s=chosen.config.runner.grace_s,
        )
        await self._start_services(state, around, http_port)
        return Running(
            http=f"http://{LOOPBACK}:{http_port}",
            nats=server.url,
            monitor=server.monitor_url,
            postgres=database.dsn,
            config=chosen.path,
            state=state,
            processes=(*self._servers, *self._services),
        )

    async def _start_servers(
        self, state: State, chosen: Chosen
    ) -> tuple[nats.Nats, postgres.Postgres]:
        port, monitor_port, postgres_port = free_ports(3)
        server = nats.Nats(state, port, monitor_port, relaxed=self._plan.relaxed)
        database = postgres.place(state, postgres_port)
        if database.home != state.postgres:
            self._progress(f"Postgres keeps its data in {database.home}")
        self._servers += [
            Kept(
                "nats",
                0,
                lambda: nats.prepare(server),
                lambda: nats.complaint(port),
                revive=lambda: _provision_again(server, chosen.config),
            ),
            Kept(
                "postgres",
                0,
                lambda: postgres.prepare(database),
                lambda: postgres.complaint(postgres_port),
            ),
        ]
        if chosen.sim_port is not None:
            claim(chosen.sim_port, "simulated provider", "base_url")
            log = state.log_path("sim")
            self._services.append(services.simulated_provider(chosen.sim_port, self._plan.cwd, log))
        await together(kept.start() for kept in (*self._servers, *self._services))
        await all_ready(self._servers, self._progress)
        await _provision(server, chosen.config)
        return server, database

    async def _start_services(
        self, state: State, around: services.Surroundings, http_port: int
    ) -> None:
        wanted = [
            (name, index)
            for name, count in services.checked_scale(self._plan.scale).items()
            for index in range(count)
        ]
        ports = free_ports(len(wanted))
        started = [
            services.service(
                name,
                index,
                http_port if name == "gateway" else port,
                around,
                state.log_path(name, index),
            )
            for (name, index), port in zip(wanted, ports, strict=True)
        ]
        self._services += started
        await together(kept.start() for kept in started)
        await all_ready(self._services, self._progress)


@asynccontextmanager
async def running(
    state: Path,
    *,
    scale: Mapping[str, int] | None = None,
    sim: bool = True,
    relaxed: bool = False,
    config: Path | None = None,
    port: int = 0,
) -> AsyncIterator[Running]:
    """A whole stack for the length of a block, on free ports unless told otherwise."""
    plan = Plan(state, scale or {}, sim=sim, relaxed=relaxed, config=config, port=port)
    async with Stack(plan).run() as up:
        yield up


async def _provision(server: nats.Nats, config: Config) -> None:
    deadline_s = config.runner.wake_deadline_s
    await provision(server.url, wake_deadline_s=deadline_s, pools=(config.tools.pool,))


async def _provision_again(server: nats.Nats, config: Config) -> None:
    """Streams in memory die with their server; a second death meanwhile starts this anew."""
    for _ in range(PROVISION_TRIES):
        try:
            await _provision(server, config)
        except LogError:
            await asyncio.sleep(POLL_S)
        else:
            return
