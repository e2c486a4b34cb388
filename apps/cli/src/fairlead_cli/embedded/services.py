"""The services as processes: how each is started, told where things are, and asked if it is ready."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from fairlead_cli.embedded.child import Command
from fairlead_cli.embedded.ports import LOOPBACK
from fairlead_cli.embedded.supervisor import Kept, Prepare
from fairlead_cli.errors import UsageError

SERVICES: Final = ("ingest", "projector", "tools", "runner", "gateway")
SCALE_MAX: Final = 64
PROBE_TIMEOUT_S: Final = 2.0
GRACE_MARGIN_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every service of one stack is told."""

    config: Path
    nats: str
    postgres: str
    cwd: Path
    grace_s: float

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "FAIRLEAD_CONFIG": str(self.config),
            "FAIRLEAD_NATS_URL": self.nats,
            "FAIRLEAD_NATS_REPLICAS": "1",
            "FAIRLEAD_POSTGRES_DSN": self.postgres,
            "FAIRLEAD_HEALTH_HOST": LOOPBACK,
        }


def checked_scale(scale: Mapping[str, int]) -> dict[str, int]:
    """How many of each service: one unless told. Raises UsageError."""
    unknown = sorted(set(scale) - set(SERVICES))
    if unknown:
        raise UsageError(f"no service is called {unknown[0]!r}: choose from {', '.join(SERVICES)}")
    for name, count in scale.items():
        if not 0 <= count <= SCALE_MAX:
            raise UsageError(f"{name}={count}: choose between 0 and {SCALE_MAX}")
    if scale.get("gateway", 1) != 1:
        raise UsageError("one gateway holds the HTTP port: scale the other services")
    return {name: scale.get(name, 1) for name in SERVICES}


def service(name: str, index: int, port: int, around: Surroundings, log: Path) -> Kept:
    """One service process; `port` is where it answers for its health."""
    variable = "FAIRLEAD_GATEWAY_PORT" if name == "gateway" else "FAIRLEAD_HEALTH_PORT"
    command = Command(
        argv=(sys.executable, "-m", f"fairlead_{name}"),
        log=log,
        cwd=around.cwd,
        env=around.environment() | {variable: str(port)},
        grace_s=around.grace_s + GRACE_MARGIN_S,
    )
    return Kept(name, index, _always(command), lambda: _readiness(port))


def simulated_provider(port: int, cwd: Path, log: Path) -> Kept:
    """The simulated provider as a process."""
    command = Command(
        argv=(sys.executable, "-m", "fairlead_cli", "sim", "--port", str(port)), log=log, cwd=cwd
    )
    return Kept("sim", 0, _always(command), lambda: _listening(port))


def _always(command: Command) -> Prepare:
    async def prepared() -> Command:
        return command

    return prepared


async def _readiness(port: int) -> str | None:
    """What a service says of itself, in words."""
    try:
        async with httpx.AsyncClient(timeout=PROBE_TIMEOUT_S, trust_env=False) as http:
            answer = await http.get(f"http://{LOOPBACK}:{port}/readyz")
    except httpx.HTTPError:
        return "it does not answer yet"
    if answer.status_code == httpx.codes.OK:
        return None
    try:
        away = answer.json()["away"]
        return "; ".join(f"{name}: {reason}" for name, reason in away.items())
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"HTTP {answer.status_code}"


async def _listening(port: int) -> str | None:
    try:
        _, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return "it does not listen yet"
    writer.close()
    return None
