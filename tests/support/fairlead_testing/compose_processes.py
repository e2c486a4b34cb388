"""Runs the services of a compose file as processes of this machine, without a container engine.

Each container becomes a sandbox (bubblewrap) with a root of its own: configurations, secrets and volumes are
at the paths of the file, and nothing else of the machine can be written. A container has an address of its
own; here it is an address of the loopback range, and stands wherever the file says "every interface" or "this
container" (0.0.0.0, 127.0.0.1). Foreign images are replaced by the same servers from wheels.
"""

import os
import random
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

from fairlead_cli.local_stack.server_programs import find_nats_server
from fairlead_testing.compose_file import COMPLETED, ComposeService, start_order
from fairlead_testing.compose_postgres import PostgresImage
from fairlead_testing.releases import ROOT, THIS, Release

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
    log: Path
    sandbox: Sequence[str] = ()
    release: Release = THIS
    """Whose code it runs, if the code is ours."""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def run(self, command: Sequence[str]) -> None:
        """Start the command of the service, and do not wait for it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.sandbox, *map(self.own, command)],
                env=self.environment(),
                stdout=log,
                stderr=log,
            )

    def environment(self) -> dict[str, str]:
        """The variables of the file that the release knows, and where its sources are."""
        own = {name: self.own(value) for name, value in self.service.environment.items()}
        known = self.release.known_settings(own) if self.release is not THIS else own
        return {"PATH": os.environ["PATH"], **known, **self.release.environment()}

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
    images: tuple[Path, ...] = (ROOT,)
    """What stands for the content of our images: sources that every container may read."""

    def volume(self, name: str) -> Path:
        path = self.root / "volumes" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def secret(self, name: str) -> str:
        """A file that the init job made."""
        return (self.volume("secrets") / name).read_text().strip()

    def address(self, name: str) -> str:
        return self.containers[name].address

    def enter(self, name: str) -> Container:
        """Make the root of a container, as its mounts are now."""
        container = self.containers[name]
        container.sandbox = _sandbox(self, container)
        return container

    def start(self, name: str) -> None:
        """Start a container, or start it again, and wait until it is healthy."""
        container = self.enter(name)
        service = container.service
        if service.image.startswith("postgres:"):
            self.postgres = PostgresImage(self.volume("postgres"), container.address)
            self.postgres.start(service.environment, self.secret("postgres/password"))
            return
        container.run(command_of(service))
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
    order = start_order(services, profiles)
    topology = prepare_topology(order, root)
    try:
        for service in order:
            assert all(_is_met(topology, *wait) for wait in service.after.items())
            topology.start(service.name)
        yield topology
    finally:
        topology.stop()


def prepare_topology(order: Sequence[ComposeService], root: Path) -> Topology:
    """The containers of these services, each with an address of its own. Nothing runs yet."""
    topology = Topology(root)
    # Another topology on this machine has other addresses.
    network = f"127.{random.randint(1, 254)}.{random.randint(0, 254)}"  # noqa: S311
    for index, service in enumerate(order, 1):
        log = root / f"{service.name}.log"
        topology.containers[service.name] = Container(service, f"{network}.{index}", log)
    lines = [f"{each.address}\t{name}\n" for name, each in topology.containers.items()]
    (root / "hosts").write_text("".join(lines))
    return topology


def _is_met(topology: Topology, name: str, condition: str) -> bool:
    process = topology.containers[name].process
    if condition == COMPLETED:
        return process is not None and process.poll() == 0
    return True


def command_of(service: ComposeService) -> list[str]:
    """The command line of a service, as its image would start it."""
    if service.package == "cli":
        return [sys.executable, "-m", "fairlead_cli", *service.command]
    if service.package is not None:
        return [sys.executable, "-m", f"fairlead_{service.package}", *service.command]
    assert service.image.startswith("nats:"), f"no process for {service.image}"
    return [str(find_nats_server()), *service.command]


def _sandbox(topology: Topology, container: Container) -> list[str]:
    """The root of a container: the system read-only, its mounts, and an empty /tmp."""
    bwrap = shutil.which("bwrap")
    assert bwrap is not None, "bubblewrap is not installed: it gives each container its root"
    words = [bwrap, "--die-with-parent", "--unshare-pid", "--as-pid-1"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    for name in SYSTEM:
        words += ["--ro-bind-try", f"/{name}", f"/{name}"]
    for name in ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for image in topology.images:
        words += ["--ro-bind", str(image), str(image)]
    words += ["--ro-bind", str(topology.root / "hosts"), "/etc/hosts"]
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
