"""The whole stack: starts servers, streams and services in order, and stops them in order."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fairlead_cli.embedded import nats_cluster, services
from fairlead_cli.embedded import state_directory as directory
from fairlead_cli.embedded.access_key import ensure_cookie_key, ensure_key
from fairlead_cli.embedded.configuration import StackConfig, choose_config
from fairlead_cli.embedded.fork_server.client import ForkClient
from fairlead_cli.embedded.nats_cluster import NatsCluster
from fairlead_cli.embedded.ports import LOOPBACK, claim_port, free_ports
from fairlead_cli.embedded.postgres import server as postgres
from fairlead_cli.embedded.postgres.access import ADMIN
from fairlead_cli.embedded.running_stack import RunningStack
from fairlead_cli.embedded.service_environment import common_environment
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.embedded.supervisor import (
    Progress,
    SupervisedProcess,
    run_together,
    stop_all,
    wait_all_ready,
)
from fairlead_cli.errors import UsageError
from fairlead_cli.local_stack.stack_plan import StackPlan
from fairlead_cli.service_names import SOLO
from fairlead_projector.roles.names import MIGRATOR


class Stack:
    """Starts a plan and stops it."""

    def __init__(self, plan: StackPlan, *, progress: Progress = lambda _line: None) -> None:
        self._plan = plan
        self._progress = progress
        self._servers: list[SupervisedProcess] = []
        self._services: list[SupervisedProcess] = []
        self._database: postgres.PostgresServer | None = None

    def hurry(self) -> None:
        """Stop without waiting for the grace time of any process."""
        for process in (*self._services, *self._servers):
            process.hurry()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[RunningStack]:
        """Run the stack for the length of a block. Raises CommandError, ConfigError."""
        if self._plan.solo and self._plan.scale:
            raise UsageError("--solo runs one process: leave out --scale, or leave out --solo")
        state = directory.prepare_state(self._plan.state)
        with directory.lock_state(state):
            directory.delete_addresses(state)
            forks = self._plan.forks or _own_forks(state)
            try:
                # It imports the services while the servers start.
                forks.start()
                run_stack = await self._start(state, forks)
                directory.save_addresses(state, run_stack.run_record())
                yield run_stack
            finally:
                directory.delete_addresses(state)
                await stop_all(self._services)
                await stop_all(self._servers)
                if self._database is not None:
                    postgres.forget(self._database)
                if self._plan.forks is None:
                    forks.close()

    async def _start(self, state: StateDirectory, forks: ForkClient) -> RunningStack:
        config = choose_config(
            state.config,
            config_path=self._plan.config,
            sim=self._plan.sim or (self._plan.config is None and self._plan.found is None),
            env=os.environ,
            cwd=self._plan.cwd,
            found=self._plan.found,
        )
        services.complete_scale(self._plan.scale, config.config.pools)
        if self._plan.solo and config.config.pools.others:
            raise UsageError(
                "--solo has one worker, and [[pool]] names more pools: leave out --solo"
            )
        port = config.config.gateway.port if self._plan.port is None else self._plan.port
        http_port = claim_port(port, "HTTP", "--port")
        token = self._owner_key(state, config)
        cluster, database = await self._start_servers(state, config)
        context = services.ServiceContext(
            state=state,
            config=config,
            nats=cluster.urls,
            postgres=database.access.service_dsns(),
            cwd=self._plan.cwd,
            gateway=self._gateway_variables(state, token, http_port),
            auth=self._auth_variables(state, token),
        )
        ops_port = await self._start_services(context, forks)
        return RunningStack(
            http=f"http://{LOOPBACK}:{http_port}",
            ops=f"http://{LOOPBACK}:{ops_port}",
            token=token,
            nats_nodes=cluster.urls,
            monitors=cluster.monitors,
            postgres=database.access.dsn(MIGRATOR),
            postgres_admin=database.access.dsn(ADMIN),
            config=config.path,
            state=state,
            processes=(*self._servers, *self._services),
        )

    async def _start_servers(
        self, state: StateDirectory, config: StackConfig
    ) -> tuple[NatsCluster, postgres.PostgresServer]:
        nodes, relaxed = self._plan.nats_nodes, self._plan.relaxed
        cluster = nats_cluster.plan_cluster(
            state, nodes, relaxed=relaxed, pools=config.config.pools
        )
        database = self._database = await postgres.locate_server(state, self._progress)
        self._servers += [
            *cluster.processes(config.config),
            SupervisedProcess(
                "postgres",
                0,
                lambda: postgres.prepare(database),
                lambda: postgres.why_not_ready(database),
            ),
        ]
        if config.sim_port is not None:
            claim_port(config.sim_port, "simulated provider", "base_url")
        await run_together(process.start() for process in self._servers)
        await wait_all_ready(self._servers, self._progress)
        await run_together((cluster.provision(config.config), database.access.migrate()))
        return cluster, database

    def _owner_key(self, state: StateDirectory, config: StackConfig) -> str | None:
        """A key for the commands on this machine, unless nobody needs one or others were named."""
        if self._plan.open or config.config.auth.keys_file is not None:
            return None
        return ensure_key(state)

    def _gateway_variables(
        self, state: StateDirectory, token: str | None, http_port: int
    ) -> dict[str, str]:
        variables = {"FAIRLEAD_GATEWAY_PORT": str(http_port), **self._plan.gateway}
        if token is not None and not self._plan.open:
            ensure_cookie_key(state)
            variables["FAIRLEAD_AUTH_COOKIE_KEY_FILE"] = str(state.cookie_key)
        return variables

    def _auth_variables(self, state: StateDirectory, token: str | None) -> dict[str, str]:
        if self._plan.open:
            return {"FAIRLEAD_AUTH_MODE": "open", "FAIRLEAD_GATEWAY_HOST": LOOPBACK}
        if token is not None:
            return {"FAIRLEAD_AUTH_MODE": "token", "FAIRLEAD_AUTH_KEYS_FILE": str(state.keys)}
        return {}

    async def _start_services(self, context: services.ServiceContext, forks: ForkClient) -> int:
        """Start every service. The answer is the operations port of the one that serves HTTP."""
        if context.config.sim_port is not None:
            self._services.append(services.sim_process(context, forks.spawn))
        ports = self._plan_services(context, forks)
        self._services += ports
        await run_together(process.start() for process in self._services)
        await wait_all_ready(self._services, self._progress)
        return next(port for process, port in ports.items() if process.name in {"gateway", SOLO})

    def _plan_services(
        self, context: services.ServiceContext, forks: ForkClient
    ) -> dict[SupervisedProcess, int]:
        """The processes of all services, and the operations port of each."""
        if self._plan.solo:
            (port,) = free_ports(1)
            return {services.solo_process(port, context, forks.spawn): port}
        instances = [
            (name, index)
            for name, count in services.complete_scale(
                self._plan.scale, context.config.config.pools
            ).items()
            for index in range(count)
        ]
        return {
            services.service_process(name, index, port, context, forks.spawn): port
            for (name, index), port in zip(instances, free_ports(len(instances)), strict=True)
        }


def _own_forks(state: StateDirectory) -> ForkClient:
    return ForkClient(state.log_path("fork-server"), common_environment(os.environ))


@asynccontextmanager
async def run_stack(
    state: Path,
    *,
    scale: Mapping[str, int] | None = None,
    sim: bool = True,
    relaxed: bool = False,
    config: Path | None = None,
    port: int = 0,
    **options: Any,  # noqa: ANN401 - the other fields of a plan
) -> AsyncIterator[RunningStack]:
    """Run a whole stack for the length of a block, by default on free ports."""
    plan = StackPlan(
        state, scale or {}, sim=sim, relaxed=relaxed, config=config, port=port, **options
    )
    async with Stack(plan).run() as stack:
        yield stack
