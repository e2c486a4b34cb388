"""Runs the services of a compose file as processes of this machine, without a container engine.

Each container becomes a sandbox (bubblewrap) with a root of its own: configurations, secrets and volumes are
at the paths of the file, and nothing else of the machine can be written. A container has an address of its
own; here it is an address of the loopback range, and stands wherever the file says "every interface" or "this
container" (0.0.0.0, 127.0.0.1). Foreign images are replaced by the same servers from wheels.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead_cli.embedded.nats import find_binary
from fairlead_testing.compose_file import COMPLETED, ComposeService, start_order
from fairlead_testing.compose_postgres import PostgresImage

START_S_MAX: Final = 90.0
STOP_S_MAX: Final = 30.0
# What a container has of the machine: programs and libraries, and no file of a user.
SYSTEM: Final = ("bin", "sbin", "lib", "lib64", "usr", "opt", "root", "work", "home")
ETC: Final = ("passwd", "group", "nsswitch.conf", "ssl", "ld.so.cache", "localtime", "alternatives")


@dataclass
class Container:
    """One running service, with its address and its log."""

    service: ComposeService
    address: str
    sandbox: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def run(self, command: Sequence[str]) -> None:
        """Start the command of the service, and do not wait for it."""
        env = {name: self.own(value) for name, value in self.service.environment.items()}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.sandbox, *map(self.own, command)],
                env={"PATH": os.environ["PATH"], **env},
                stdout=log,
                stderr=log,
            )

    def own(self, text: str) -> str:
        """The text of the file as this container sees it."""
        return text.replace("0.0.0.0", self.address).replace("127.0.0.1", self.address)  # noqa: S104

    def is_healthy(self) -> bool:
        """Whether the health check of the file passes, run inside the container."""
        if self.service.healthcheck is None:
            return True
        check = [self.own(word) for word in self.service.healthcheck]
        check[0] = {"python": sys.executable}.get(check[0], check[0])
        ran = subprocess.run([*self.sandbox, *check], capture_output=True, check=False, timeout=10)
        return ran.returncode == 0

    def kill(self) -> None:
        """End the service at once, as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End the service as `docker stop` does. Returns its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, sig: signal.Signals) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            # The sandbox is the parent of the service, and dies with it.
            for child in _children(self.process.pid) or [self.process.pid]:
                os.kill(child, sig)
        code = self.process.wait(STOP_S_MAX)
        self.process = None
        return code


@dataclass
class Topology:
    """The containers of one file. Volumes live below a directory of the test."""

    root: Path
    containers: dict[str, Container] = field(default_factory=dict)
    postgres: PostgresImage | None = None

    def volume(self, name: str) -> Path:
        path = self.root / "volumes" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def secret(self, name: str) -> str:
        """A file that the init job made."""
        return (self.volume("secrets") / name).read_text().strip()

    def address(self, name: str) -> str:
        return self.containers[name].address

    def start(self, name: str) -> None:
        """Start a container, or start it again, and wait until it is healthy."""
        container = self.containers[name]
        service = container.service
        if service.image.startswith("postgres:"):
            self.postgres = PostgresImage(self.volume("postgres"), container.address)
            self.postgres.start(service.environment, self.secret("postgres/password"))
            return
        container.run(_command(service))
        if not service.restarts:
            assert container.process is not None
            code = container.process.wait(START_S_MAX)
            assert code == 0, f"{name} ended with {code}:\n{container.log.read_text()[-2000:]}"
            return
        deadline = time.monotonic() + START_S_MAX
        while not container.is_healthy():
            assert container.process is not None
            text = f"{name} is not healthy:\n{container.log.read_text()[-2000:]}"
            assert container.process.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.2)

    def stop(self) -> None:
        for container in reversed(self.containers.values()):
            container.stop()
        if self.postgres is not None:
            self.postgres.stop()


@contextmanager
def run_topology(
    services: dict[str, ComposeService], root: Path, profiles: frozenset[str] = frozenset()
) -> Iterator[Topology]:
    """Start the services in the order of the file, each when those before it are healthy or done."""
    topology = Topology(root)
    order = start_order(services, profiles)
    addresses = {service.name: f"127.0.77.{index}" for index, service in enumerate(order, 1)}
    hosts = root / "hosts"
    hosts.write_text("".join(f"{address}\t{name}\n" for name, address in addresses.items()))
    try:
        for service in order:
            log = root / f"{service.name}.log"
            container = Container(service, addresses[service.name], (), log)
            container.sandbox = _sandbox(topology, container, hosts)
            topology.containers[service.name] = container
            assert all(_is_met(topology, *wait) for wait in service.after.items())
            topology.start(service.name)
        yield topology
    finally:
        topology.stop()


def _is_met(topology: Topology, name: str, condition: str) -> bool:
    process = topology.containers[name].process
    if condition == COMPLETED:
        return process is not None and process.poll() == 0
    return True


def _command(service: ComposeService) -> list[str]:
    if service.package == "cli":
        return [str(Path(sys.executable).with_name("fairlead")), *service.command]
    if service.package is not None:
        return [sys.executable, "-m", f"fairlead_{service.package}", *service.command]
    assert service.image.startswith("nats:"), f"no process for {service.image}"
    return [str(find_binary()), *service.command]


def _sandbox(topology: Topology, container: Container, hosts: Path) -> list[str]:
    """The root of a container: the system read-only, its mounts, and an empty /tmp."""
    bwrap = shutil.which("bwrap")
    assert bwrap is not None, "bubblewrap is not installed: it gives each container its root"
    words = [bwrap, "--die-with-parent", "--unshare-pid", "--as-pid-1"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    for name in SYSTEM:
        words += ["--ro-bind-try", f"/{name}", f"/{name}"]
    for name in ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--ro-bind", str(hosts), "/etc/hosts"]
    for mount in container.service.mounts:
        if mount.file is not None:
            copy = topology.root / f"{container.service.name}-{mount.file.name}"
            copy.write_text(container.own(mount.file.read_text()))
            words += ["--ro-bind", str(copy), mount.target]
        elif mount.volume is not None:
            source = topology.volume(mount.volume) / mount.subpath
            assert source.is_dir(), f"{container.service.name} mounts {source} before it exists"
            words += ["--ro-bind" if mount.read_only else "--bind", str(source), mount.target]
    return words


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]
