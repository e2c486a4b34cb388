"""The services as processes: how each is started, configured and probed for readiness."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from fairlead_cli.embedded.child_process import ProcessSpec, Spawn
from fairlead_cli.embedded.configuration import StackConfig
from fairlead_cli.embedded.local_http import local_client
from fairlead_cli.embedded.nats_auth import nats_environment
from fairlead_cli.embedded.ports import LOOPBACK
from fairlead_cli.embedded.service_environment import (
    READERS_OF_SECTION,
    common_environment,
    service_environment,
)
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.embedded.supervisor import Prepare, SupervisedProcess
from fairlead_cli.errors import UsageError
from fairlead_cli.service_names import SCALABLE, SERVICES, SOLO
from fairlead_cli.solo.settings_variable import SETTINGS_VARIABLE
from fairlead_schema.tools.pool_rules import ONE_POOL, PoolRules, worker_identity
from fairlead_service.config.section import join_directories
from fairlead_service.config.variables import PREFIX

"""The name of the process that has all services."""
SCALE_MAX: Final = 64
PROBE_TIMEOUT_S: Final = 2.0
GRACE_MARGIN_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """The addresses and settings that the services of one stack get."""

    state: StateDirectory
    config: StackConfig
    nats: tuple[str, ...]
    # The address of Postgres for each service that uses it.
    postgres: Mapping[str, str]
    cwd: Path
    gateway: Mapping[str, str]
    """The variables of the gateway alone, such as its port."""
    auth: Mapping[str, str]
    """Who may call: for the gateway, and for the runs of schedules."""

    @property
    def grace_s(self) -> float:
        return self.config.config.runner.grace_s

    def environment(self, name: str) -> dict[str, str]:
        """The environment of one service: its part of ours, and the addresses that it needs."""
        own = self.inherited_variables(name) | {
            "FAIRLEAD_CONFIG": str(self.config.path),
            **nats_environment(self.state, name),
            "FAIRLEAD_NATS_URL": ",".join(self.nats),
            "FAIRLEAD_NATS_REPLICAS": str(len(self.nats)),
            "FAIRLEAD_HEALTH_HOST": LOOPBACK,
            "FAIRLEAD_LOCATION_DEFAULT": self.config.config.location.default or str(self.cwd),
        }
        if name in self.postgres:
            own["FAIRLEAD_POSTGRES_DSN"] = self.postgres[name]
        if name in READERS_OF_SECTION["auth"]:
            own |= self.auth
        return own | (self._worker_variables(name) if program_of(name) == "tools" else {})

    def inherited_variables(self, name: str) -> dict[str, str]:
        """What one service gets of our own environment, with the secrets that it needs."""
        return service_environment(program_of(name), os.environ, self.config.config)

    def _worker_variables(self, name: str) -> dict[str, str]:
        """The pool that a worker serves, and its directories."""
        pools = self.config.config.pools
        pool = next(pool for pool in pools.names if pools.identity(pool) == name)
        return {"FAIRLEAD_TOOLS_POOL": pool, **self._tool_directories()}

    def _tool_directories(self) -> dict[str, str]:
        """Where tools keep temporary files and downloads, unless the configuration says where.

        No tool may touch the state, which often lies inside a location and contains tokens.
        """
        tools, context = self.config.config.tools, self.config.config.context
        private = (*tools.private_directories, str(self.state.root))
        directories = {"FAIRLEAD_TOOLS_PRIVATE_DIRECTORIES": join_directories(private)}
        if "spool_dir" not in tools.model_fields_set:
            directories["FAIRLEAD_TOOLS_SPOOL_DIR"] = str(self.state.tools)
        if "cache" not in context.model_fields_set:
            directories["FAIRLEAD_CONTEXT_CACHE"] = str(self.state.cache)
        return directories


def program_of(name: str) -> str:
    """The service that a process runs. The workers of each pool have a name of their own."""
    return "tools" if name.startswith("tools-") else name


def all_names(pools: PoolRules) -> tuple[str, ...]:
    """The names of all processes: each service, and the workers of each pool."""
    return (*SERVICES, *map(worker_identity, pools.others))


def complete_scale(scale: Mapping[str, int], pools: PoolRules = ONE_POOL) -> dict[str, int]:
    """The number of processes of each service and pool, one by default. Raises UsageError."""
    names = all_names(pools)
    unknown = sorted(set(scale) - set(names))
    if unknown:
        known = ", ".join((*SCALABLE, *map(worker_identity, pools.others)))
        raise UsageError(f"no service is called {unknown[0]!r}: choose from {known}")
    for name, count in scale.items():
        if not 0 <= count <= SCALE_MAX:
            raise UsageError(f"{name}={count}: choose between 0 and {SCALE_MAX}")
    if scale.get("gateway", 1) != 1:
        raise UsageError(f"one gateway holds the HTTP port: scale {', '.join(SCALABLE)} instead")
    return {name: scale.get(name, 1) for name in names}


def service_process(
    name: str, index: int, port: int, context: ServiceContext, spawn: Spawn
) -> SupervisedProcess:
    """One service process; `port` is where it serves its health."""
    own = {"FAIRLEAD_HEALTH_PORT": str(port)} | (dict(context.gateway) if name == "gateway" else {})
    spec = ProcessSpec(
        argv=(sys.executable, "-m", f"fairlead_{program_of(name)}"),
        log=context.state.log_path(name, index),
        cwd=context.cwd,
        env=context.environment(name) | own,
        grace_s=context.grace_s + GRACE_MARGIN_S,
    )
    return SupervisedProcess(
        name, index, _fixed_spec(spec), lambda: _probe_readyz(port), spawn=spawn
    )


def solo_process(port: int, context: ServiceContext, spawn: Spawn) -> SupervisedProcess:
    """All services in one process: it has the secrets of each, and each has its own settings."""
    shared: dict[str, str] = {}
    settings: dict[str, dict[str, str]] = {}
    for name in SERVICES:
        shared |= context.inherited_variables(name)
        own = context.environment(name) | (dict(context.gateway) if name == "gateway" else {})
        settings[name] = {
            variable: value for variable, value in own.items() if variable.startswith(PREFIX)
        }
    settings["gateway"]["FAIRLEAD_HEALTH_PORT"] = str(port)
    spec = ProcessSpec(
        argv=(sys.executable, "-m", "fairlead_cli.solo"),
        log=context.state.log_path(SOLO),
        cwd=context.cwd,
        env=shared | {SETTINGS_VARIABLE: json.dumps(settings)},
        grace_s=context.grace_s + GRACE_MARGIN_S,
    )
    return SupervisedProcess(SOLO, 0, _fixed_spec(spec), lambda: _probe_readyz(port), spawn=spawn)


def sim_process(context: ServiceContext, spawn: Spawn) -> SupervisedProcess:
    """The simulated provider as a process."""
    port = context.config.sim_port
    assert port is not None, "the configuration has a simulated provider"
    spec = ProcessSpec(
        argv=(sys.executable, "-m", "fairlead_cli", "sim", "--port", str(port)),
        log=context.state.log_path("sim"),
        cwd=context.cwd,
        env=common_environment(os.environ),
    )
    return SupervisedProcess("sim", 0, _fixed_spec(spec), lambda: _probe_port(port), spawn=spawn)


def _fixed_spec(spec: ProcessSpec) -> Prepare:
    async def prepare() -> ProcessSpec:
        return spec

    return prepare


async def _probe_readyz(port: int) -> str | None:
    """Why a service is not ready, from its `/readyz`; None when it is."""
    try:
        async with local_client(PROBE_TIMEOUT_S) as http:
            response = await http.get(f"http://{LOOPBACK}:{port}/readyz")
    except httpx.HTTPError:
        return "it does not answer yet"
    try:
        # A local stack starts with everything, so a service that could do without waits too.
        body = response.json()
        away = {**body["away"], **body.get("degraded", {})}
        return "; ".join(f"{name}: {reason}" for name, reason in away.items()) or None
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"HTTP {response.status_code}"


async def _probe_port(port: int) -> str | None:
    try:
        _, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return "it does not listen yet"
    writer.close()
    return None
