"""The release before this one: its sources from the history of the repository, run by this Python."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fairlead_cli.embedded import services
from fairlead_cli.embedded.child_process import ProcessSpec
from fairlead_cli.embedded.nats_auth import nats_environment
from fairlead_cli.embedded.ports import free_port
from fairlead_cli.embedded.running_stack import RunningStack
from fairlead_cli.embedded.supervisor import SupervisedProcess, stop_all, wait_all_ready

ROOT = Path(__file__).parents[3]
COMMIT = (ROOT / "tests" / "integration" / "earlier_release.txt").read_text().strip()


@dataclass(frozen=True)
class Release:
    """Where the sources of a release are; nothing for this release."""

    python_path: str | None = None

    def environment(self) -> dict[str, str]:
        return {} if self.python_path is None else {"PYTHONPATH": self.python_path}


THIS = Release()


def unpack_earlier_release(place: Path) -> Release:
    """Unpack the sources. A clone without their commit cannot: the test is skipped."""
    known = subprocess.run(
        ["git", "cat-file", "-e", f"{COMMIT}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if known.returncode:
        pytest.skip(f"this clone does not have the commit of the earlier release, {COMMIT}")
    archive = place / "earlier.tar"
    subprocess.run(["git", "archive", "-o", str(archive), COMMIT], cwd=ROOT, check=True)
    sources = place / "earlier"
    sources.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(sources)], check=True)
    packages = sorted(path for path in sources.glob("*/*/src") if path.is_dir())
    return Release(os.pathsep.join(map(str, packages)))


def process_of(release: Release, model: SupervisedProcess) -> SupervisedProcess:
    """A process of a release with the settings of a process of the stack, on its own health port."""
    port = free_port()
    which = "this" if release is THIS else "earlier"

    async def prepare() -> ProcessSpec:
        spec = await model._prepare()  # noqa: SLF001 - the stack has no other releases
        own = {"FAIRLEAD_HEALTH_PORT": str(port), **release.environment()}
        log = spec.log.with_name(f"{spec.log.stem}-{which}-{port}.log")
        return replace(spec, env={**spec.env, **own}, log=log)

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
