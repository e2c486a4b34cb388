"""The server process: the wheel's binaries as a foreground child process, on a private socket."""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fairlead_cli.embedded import child_process, launcher
from fairlead_cli.embedded.child_process import ProcessSpec
from fairlead_cli.embedded.postgres.access import (
    ADMIN,
    CLIENT_RULES,
    SOCKET_NAME,
    SOCKET_NUMBER,
    PostgresAccess,
)
from fairlead_cli.embedded.postgres.outside_data import move_outside_data
from fairlead_cli.embedded.postgres.passwords import PostgresPasswords, generate_password
from fairlead_cli.embedded.postgres.socket_directory import (
    choose_socket_directory,
    remove_socket_directory,
)
from fairlead_cli.embedded.postgres.user import choose_user, file_owner, give_files, own_directory
from fairlead_cli.embedded.private_files import write_private
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.embedded.supervisor import Progress
from fairlead_cli.errors import ProcessFailed
from fairlead_cli.local_stack.server_programs import find_postgres

PROTOCOL: Final = 196608
HELLO: Final = b"user\0postgres\0database\0postgres\0\0"
AUTHENTICATION: Final = b"R"
PROBE_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """The directories, the access and the user of one Postgres."""

    home: Path
    install: Path
    access: PostgresAccess
    user: str
    log: Path

    @property
    def data(self) -> Path:
        return self.home / "data"


async def locate_server(state: StateDirectory, progress: Progress) -> PostgresServer:
    """Choose the user and the socket, and move in data that an earlier release kept outside."""
    install, home = find_postgres(), state.postgres
    own_directory(home)
    user = await asyncio.to_thread(choose_user, home, install / "bin" / "postgres")
    if user == launcher.BECOME_NOBODY:
        progress("Postgres cannot run in a user namespace here: it runs as nobody instead")
    place = choose_socket_directory(home, SOCKET_NAME, os.environ)
    if place != home:
        progress(f"the state's path does not fit a socket: Postgres listens in {place}")
    access = PostgresAccess(place, PostgresPasswords(state.passwords))
    server = PostgresServer(home, install, access, user, state.log_path("postgres"))
    if moved_from := await move_outside_data(state, server.data):
        progress(f"Postgres' data moved from {moved_from} into {home}")
    return server


async def prepare(server: PostgresServer) -> ProcessSpec:
    """Initialise the data once, clean up after a crash, and return how to start the server."""
    if not (server.data / "PG_VERSION").exists():
        await _initialise(server)
    await _clear_stale_pid(server)
    give_files(server.data, file_owner(server.user))
    if not server.access.passwords.has(ADMIN):
        await _set_admin_password(server)
    (server.data / "pg_hba.conf").write_text(CLIENT_RULES)
    return _process_spec(
        server,
        "postgres",
        *("-D", str(server.data), "-p", str(SOCKET_NUMBER), "-c", "listen_addresses="),
        *("-c", f"unix_socket_directories={server.access.socket_directory}"),
        *("-c", "unix_socket_permissions=0600"),
    )


def forget(server: PostgresServer) -> None:
    """Remove what a stopped server needs no more outside the state directory."""
    remove_socket_directory(server.access.socket_directory, server.home)


async def why_not_ready(server: PostgresServer) -> str | None:
    """Why Postgres is not ready; None when it is."""
    try:
        reply = await asyncio.wait_for(_probe(server.access.socket), PROBE_TIMEOUT_S)
    except (OSError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"
    return None if reply == AUTHENTICATION else "Postgres does not take connections yet"


def _environment(server: PostgresServer) -> Mapping[str, str]:
    return {"PATH": os.defpath, "HOME": str(server.home), "LANG": "C.UTF-8", "TZ": "UTC"}


def _process_spec(server: PostgresServer, program: str, *arguments: str) -> ProcessSpec:
    return ProcessSpec(
        argv=(str(server.install / "bin" / program), *arguments),
        log=server.log,
        cwd=server.home,
        env=_environment(server),
        user=server.user,
        # SIGINT is the fast shutdown; SIGTERM would wait until every client has disconnected.
        stop_signal=signal.SIGINT,
        death_signal=signal.SIGINT,
    )


async def _initialise(server: PostgresServer) -> None:
    # An initdb that died half-way leaves a directory that the next initdb refuses.
    fresh = server.home / "initialising"
    shutil.rmtree(fresh, ignore_errors=True)
    password = server.home / "initial-password"
    write_private(password, server.access.passwords.ensure(ADMIN))
    try:
        await _run_to_end(
            _process_spec(
                server,
                "initdb",
                *("-D", str(fresh), "-U", ADMIN, f"--pwfile={password}"),
                *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"),
            )
        )
    finally:
        password.unlink()
    fresh.rename(server.data)


async def _set_admin_password(server: PostgresServer) -> None:
    """Give the administrator a password: earlier releases trusted everybody."""
    statement, password = server.home / "initial-password", generate_password()
    write_private(statement, f"ALTER ROLE {ADMIN} PASSWORD '{password}'\n")
    spec = _process_spec(server, "postgres", "--single", "-D", str(server.data), ADMIN)
    try:
        await _run_to_end(replace(spec, standard_input=statement))
    finally:
        statement.unlink()
    # The file comes last: without the file, the next start tries again.
    server.access.passwords.store(ADMIN, password)


async def _run_to_end(spec: ProcessSpec) -> None:
    process = await child_process.spawn(spec)
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if code != 0:
        raise ProcessFailed(Path(spec.argv[0]).name, f"exit code {code}", spec.log)


async def _clear_stale_pid(server: PostgresServer) -> None:
    """Remove pid files whose pid was reused or is a zombie: Postgres would refuse to start."""
    path = server.data / "postmaster.pid"
    try:
        pid = int(path.read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return
    await child_process.end_orphan(pid, str(server.data), signal.SIGINT, grace_s=15.0)
    if child_process.pid_exists(pid):
        path.unlink(missing_ok=True)
        server.access.socket.with_name(f"{SOCKET_NAME}.lock").unlink(missing_ok=True)


async def _probe(socket: Path) -> bytes:
    reader, writer = await asyncio.open_unix_connection(socket)
    try:
        writer.write((len(HELLO) + 8).to_bytes(4) + PROTOCOL.to_bytes(4) + HELLO)
        return await reader.read(1)
    finally:
        writer.close()
