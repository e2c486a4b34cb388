"""Processes of a stack that belong to another release, with the settings of the stack."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

from fairlead_cli.embedded import services
from fairlead_cli.embedded.child_process import ProcessSpec
from fairlead_cli.embedded.nats_auth import nats_environment
from fairlead_cli.embedded.ports import free_port
from fairlead_cli.embedded.running_stack import RunningStack
from fairlead_cli.embedded.supervisor import SupervisedProcess, stop_all, wait_all_ready
from fairlead_testing.releases import THIS, Release


def process_of(release: Release, model: SupervisedProcess) -> SupervisedProcess:
    """A process of a release with the settings of a process of the stack, on its own health port."""
    port = free_port()
    which = "this" if release is THIS else "earlier"

    async def prepare() -> ProcessSpec:
        spec = await model._prepare()  # noqa: SLF001 - the stack has no other releases
        own = {"FAIRLEAD_HEALTH_PORT": str(port), **release.environment()}
        log = spec.log.with_name(f"{spec.log.stem}-{which}-{port}.log")
        return replace(spec, env={**release.known_settings(spec.env), **own}, log=log)

    return SupervisedProcess(model.name, port, prepare, lambda: services._probe_readyz(port))  # noqa: SLF001


@asynccontextmanager
async def run_services(
    up: RunningStack, release: Release, names: Iterable[str]
) -> AsyncIterator[None]:
    """Run these services of a release during the block."""
    processes = [process_of(release, up.process(name)) for name in names]
    try:
        for process in processes:
            await process.start()
        await wait_all_ready(processes, lambda _line: None)
        yield
    finally:
        await stop_all(processes)


def rebuild_with(release: Release, up: RunningStack) -> None:
    """Make the read models again with the tables of a release."""
    environment = {
        **os.environ,
        **release.environment(),
        **nats_environment(up.state, "operator"),
        "FAIRLEAD_NATS_URL": up.nats,
        "FAIRLEAD_POSTGRES_MIGRATE_DSN": up.postgres,
        "FAIRLEAD_POSTGRES_DSN": up.postgres,
    }
    subprocess.run(
        [sys.executable, "-m", "fairlead_cli", "rebuild", "--config", str(up.config)],
        env=environment,
        cwd=up.state.root,
        check=True,
        timeout=120,
    )
