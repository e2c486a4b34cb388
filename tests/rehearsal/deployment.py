"""The compose file as processes of a release, and the `fairlead` command of its operators."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import httpx

from fairlead_testing.compose_file import ComposeService, Mount, load_compose, start_order
from fairlead_testing.compose_processes import Topology, command_of, prepare_topology
from fairlead_testing.deploy_files import DEPLOY, SERVICES
from fairlead_testing.releases import THIS, Release

NODES: Final = ("nats-1", "nats-2", "nats-3")
JOBS: Final = ("provision", "migrate")
# docs/operations/upgrade.md says this order. Services that the earlier release did not have come last.
ORDER: Final = ("projector", "ingest", "tools", "runner", "gateway")
NEW: Final = tuple(name for name in SERVICES if name not in ORDER)
# An operator's own file, in words that the earlier release knows too.
CONFIG: Final = """
default_model = "sim/steady"
default_agent = "build"

[provider.sim]
protocol = "openai-chat"
base_url = "http://sim:9000"

[provider.sim.model.steady]
context = 200_000
output = 8_192

[location]
roots = ["/srv/workspaces"]
"""
PASSWORD_FILE: Final = re.compile(r"passfile=/run/fairlead/(\w+)\.pgpass")
COMMAND_S_MAX: Final = 180.0
JOB_TRIES: Final = 3
WHOLE_S_MAX: Final = 120.0


class CommandFailed(Exception):
    """A command of an operator ended with an error. The text has what it wrote."""


class Deployment:
    """One topology below a directory. Its processes end with the block that runs it."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._services = {name: each.service for name, each in topology.containers.items()}

    @property
    def url(self) -> str:
        return f"http://{self.topology.address('gateway')}:8420"

    @property
    def headers(self) -> dict[str, str]:
        key = self.topology.secret("operator/key")
        return {"authorization": f"Bearer {key}", "host": "gateway"}

    @property
    def backups(self) -> Path:
        return self.topology.volume("backup")

    def start(self, names: Sequence[str], release: Release = THIS) -> None:
        """Start services of a release one after another, each when it is healthy or done."""
        for name in names:
            container = self.topology.containers[name]
            container.release = release
            container.service = self._services[name]
            if release is not THIS:
                container.service = self._with_plain_addresses(container.service)
            self._start_one(name)

    def _start_one(self, name: str) -> None:
        """A job that failed on a busy machine runs again, as Kubernetes does it."""
        for _ in range(JOB_TRIES - 1 if name in JOBS else 0):
            with suppress(AssertionError):
                return self.topology.start(name)
        return self.topology.start(name)

    def _with_plain_addresses(self, service: ComposeService) -> ComposeService:
        """The earlier release knows no files of passwords: its addresses of Postgres hold them."""
        environment = dict(service.environment)
        for name, value in service.environment.items():
            if found := PASSWORD_FILE.search(value):
                environment[name] = self.topology.secret(f"{service.name}/{found[1]}.dsn")
        return replace(service, environment=environment)

    def replace(self, name: str, release: Release = THIS) -> None:
        """Stop a service as a deploy does, and start the one of a release in its place."""
        self.topology.containers[name].stop()
        self.start([name], release)

    def lose_node(self, name: str) -> None:
        """Kill a nats node, and delete its disk."""
        self.topology.containers[name].kill()
        shutil.rmtree(self.topology.volume(name))

    def fairlead(self, *arguments: str) -> str:
        """Run the command with the operator's key. Raises CommandFailed."""
        container = self.topology.enter("operator")
        command = command_of(replace(container.service, command=arguments))
        ran = subprocess.run(
            [*container.sandbox, *command],
            env=container.environment(),
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            check=False,
        )
        if ran.returncode:
            text = f"{ran.stdout[-1000:]}\n{ran.stderr[-1000:]}"
            raise CommandFailed(
                f"fairlead {' '.join(arguments)} ended with {ran.returncode}: {text}"
            )
        return ran.stdout

    def wait_until_whole(self) -> int:
        """Wait until every stream has three copies that are up to date. Returns how many streams."""
        deadline = time.monotonic() + WHOLE_S_MAX
        while True:
            incomplete, streams = self._incomplete_streams()
            if streams and not incomplete:
                return streams
            assert time.monotonic() < deadline, f"these streams lack copies: {incomplete}"
            time.sleep(0.5)

    def _incomplete_streams(self) -> tuple[list[str], int]:
        """The streams without a leader or with copies that are behind, and how many have a leader."""
        names: set[str] = set()
        whole: set[str] = set()
        for node in NODES:
            url = f"http://{self.topology.address(node)}:8222/jsz?accounts=true&streams=true"
            for account in httpx.get(url, trust_env=False).json().get("account_details", ()):
                for stream in account.get("stream_detail", ()):
                    names.add(stream["name"])
                    copies = stream["cluster"].get("replicas", ())
                    is_whole = len(copies) == 2 and all(
                        each.get("current") and not each.get("offline") for each in copies
                    )
                    if stream["cluster"].get("leader") == node and is_whole:
                        whole.add(stream["name"])
        return sorted(names - whole), len(whole)


@contextmanager
def run_deployment(root: Path, images: Sequence[Path] = ()) -> Iterator[Deployment]:
    """A deployment whose secrets exist, and which runs nothing yet."""
    root.mkdir()
    config = root / "fairlead.toml"
    config.write_text(CONFIG)
    services = {
        name: replace(service, mounts=tuple(_with_config(each, config) for each in service.mounts))
        for name, service in load_compose(DEPLOY / "compose.yaml", {}).items()
    }
    services["operator"] = replace(
        services["provision"],
        name="operator",
        command=(),
        after={},
        mounts=(
            *(mount for mount in services["provision"].mounts if mount.file is not None),
            Mount("/run/fairlead", volume="secrets", subpath="operator", read_only=True),
            Mount("/backup", volume="backup"),
        ),
    )
    topology = prepare_topology(start_order(services, frozenset({"sim"})), root)
    topology.images = (*topology.images, *images)
    try:
        topology.start("init")
        yield Deployment(topology)
    finally:
        topology.stop()


def _with_config(mount: Mount, config: Path) -> Mount:
    is_config = mount.file is not None and mount.file.name == config.name
    return replace(mount, file=config) if is_config else mount
