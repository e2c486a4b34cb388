"""The embedded Postgres keeps its data, stays inside the state directory, and trusts nobody."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from fairlead_cli.embedded import launcher
from fairlead_cli.embedded.postgres import outside_data
from fairlead_cli.embedded.postgres import server as postgres
from fairlead_cli.embedded.postgres.access import ADMIN, add_password
from fairlead_cli.embedded.postgres.user import WAYS, choose_user, give_files
from fairlead_cli.embedded.state_directory import StateDirectory, prepare_state
from fairlead_cli.errors import StateUnusable
from fairlead_cli.local_stack.server_programs import find_postgres
from fairlead_projector.roles.names import MIGRATOR
from fairlead_testing.embedded_servers import (
    kill_and_wait,
    postgres_on,
    postgres_process,
    run_processes,
)

pytestmark = pytest.mark.integration

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
UNPRIVILEGED = """
import asyncio, site, sys
site.addsitedir(sys.argv[1])
sys.path[:0] = sys.argv[3:]
from pathlib import Path
import psycopg
from fairlead_cli.embedded.postgres import server as postgres
from fairlead_cli.embedded.postgres.access import ADMIN
from fairlead_cli.embedded.state_directory import prepare_state
from fairlead_cli.embedded.supervisor import SupervisedProcess

async def main():
    server = await postgres.locate_server(prepare_state(Path(sys.argv[2])), print)
    process = SupervisedProcess(
        "postgres", 0, lambda: postgres.prepare(server), lambda: postgres.why_not_ready(server)
    )
    await process.start()
    await process.wait_ready()
    with psycopg.connect(server.access.dsn(ADMIN)) as connection:
        print(connection.execute("select 42").fetchone()[0])
    await process.stop()

asyncio.run(main())
"""


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return prepare_state(tmp_path / "state")


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that every user may enter, as the temporary directories of pytest are not."""
    place = Path(tempfile.mkdtemp(prefix="fairlead-open-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


async def test_postgres_keeps_its_rows_through_kill_and_restart(state: StateDirectory) -> None:
    process, server = await postgres_on(state)
    async with run_processes(process):
        keep_answer(server)
        await kill_and_wait(process)
        assert answer(server) == 42

    process, server = await postgres_on(state)
    async with run_processes(process):
        assert answer(server) == 42


async def test_postgres_has_no_right_of_root(state: StateDirectory) -> None:
    process, _server = await postgres_on(state)
    async with run_processes(process):
        assert effective_rights(process.pid) == 0


async def test_a_reused_pid_does_not_keep_postgres_down(state: StateDirectory) -> None:
    process, server = await postgres_on(state)
    async with run_processes(process):
        pass
    (server.data / "postmaster.pid").write_text(f"{os.getpid()}\n{server.data}\n0\n0\n")
    lock = server.access.socket.with_name(f"{server.access.socket.name}.lock")
    lock.write_text(f"{os.getpid()}\n{server.data}\n0\n0\n")

    process, _ = await postgres_on(state)
    async with run_processes(process):
        assert process.deaths.count == 0


@as_root
@pytest.mark.parametrize("uid", [1, 61_234], ids=["a user", "a uid without a name"])
def test_postgres_runs_as_an_ordinary_user_too(open_place: Path, uid: int) -> None:
    python = Path("/usr/bin/python3")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    probe = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.stdout.strip() != version:
        pytest.skip("no system Python of this version")
    os.chown(open_place, uid, uid)

    result = subprocess.run(
        [
            *("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"),
            *(python, "-c", UNPRIVILEGED, Path(psycopg.__file__).parents[1], open_place / "state"),
            *(path for path in sys.path if path.endswith("src")),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=open_place,
    )

    assert (result.returncode, result.stdout.strip()) == (0, "42"), result.stderr


@as_root
@pytest.mark.parametrize("user", WAYS)
async def test_root_keeps_all_data_inside_a_closed_state_directory(
    state: StateDirectory, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D17: root's data was in /var/lib/fairlead, because `nobody` cannot enter a closed directory."""
    monkeypatch.setattr(postgres, "choose_user", lambda _home, _program: user)
    process, server = await postgres_on(state)

    async with run_processes(process):
        keep_answer(server)
        assert working_directory(process.pid) == server.data

    owner = launcher.NOBODY if user == launcher.BECOME_NOBODY else 0
    assert server.data.is_relative_to(state.root)
    assert server.data.stat().st_uid == owner
    assert stat.S_IMODE(state.root.stat().st_mode) == 0o700
    assert not (state.root / outside_data.NAME_FILE).exists()


@as_root
async def test_data_of_one_user_serves_the_other_after_a_change_of_the_way(
    state: StateDirectory,
) -> None:
    _, server = await postgres_on(state)
    for user in (*WAYS, WAYS[0]):
        server = replace(server, user=user)
        async with run_processes(postgres_process(server)):
            keep_answer(server)
            assert answer(server) == 42


@as_root
async def test_data_that_an_earlier_release_gave_to_nobody_becomes_roots(
    state: StateDirectory,
) -> None:
    process, server = await postgres_on(state)
    async with run_processes(process):
        keep_answer(server)
    give_files(server.home, launcher.NOBODY)

    process, server = await postgres_on(state)
    async with run_processes(process):
        assert answer(server) == 42

    assert server.user == launcher.NAMESPACE
    assert {server.home.stat().st_uid, server.data.stat().st_uid} == {0}


@as_root
def test_a_directory_that_a_namespace_cannot_enter_is_used_as_nobody(tmp_path: Path) -> None:
    """In a namespace root has no rights over files of other users."""
    place = tmp_path / "foreign"
    place.mkdir(mode=0o700)
    os.chown(place, 1, 1)
    program = find_postgres() / "bin" / "postgres"

    assert choose_user(place, program) == launcher.BECOME_NOBODY
    with pytest.raises(StateUnusable, match="ordinary user"):
        choose_user(place, place / "missing")


async def test_a_password_for_another_server_does_not_stop_a_stack(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, server = await postgres_on(state)
    monkeypatch.setenv("PGPASSWORD", "of another server")

    async with run_processes(process):
        await server.access.migrate()
        dsn = add_password(server.access.dsn(MIGRATOR))
        with psycopg.connect(dsn) as connection:
            assert connection.info.user == MIGRATOR


async def test_tables_of_a_newer_release_are_refused_with_the_way_out(
    state: StateDirectory,
) -> None:
    process, server = await postgres_on(state)
    async with run_processes(process):
        await server.access.migrate()
        with psycopg.connect(server.access.dsn(MIGRATOR)) as connection:
            connection.execute(
                "INSERT INTO public.fairlead_migration (number, name, checksum)"
                " SELECT max(number) + 1, '9999_later.sql', '' FROM public.fairlead_migration"
            )

        with pytest.raises(StateUnusable, match=r"9999_later\.sql.*--state"):
            await server.access.migrate()


async def test_postgres_listens_on_no_port_and_takes_nobody_without_a_password(
    state: StateDirectory,
) -> None:
    """B16: every local user could connect as the administrator over TCP."""
    process, server = await postgres_on(state)
    async with run_processes(process):
        with psycopg.connect(server.access.dsn(ADMIN)) as connection:
            assert setting(connection, "listen_addresses") == ""
        for passfile in ("/dev/null", server.access.passwords.file("nobody")):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(server.access.dsn(ADMIN), passfile=str(passfile))
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            psycopg.connect(make_conninfo(server.access.dsn(ADMIN), password=server.home.name))


async def test_an_address_holds_no_password(state: StateDirectory) -> None:
    _, server = await postgres_on(state)
    password = server.access.passwords.ensure(ADMIN)

    assert password not in server.access.dsn(ADMIN)
    assert stat.S_IMODE(server.access.passwords.file(ADMIN).stat().st_mode) == 0o600


async def test_data_that_trusted_everybody_gets_a_password(state: StateDirectory) -> None:
    """B16: data of an earlier release has no password, and its rules trust every client."""
    process, server = await postgres_on(state)
    async with run_processes(process):
        keep_answer(server)
        with psycopg.connect(server.access.dsn(ADMIN)) as connection:
            connection.execute("ALTER ROLE postgres PASSWORD NULL")
    server.access.passwords.file(ADMIN).unlink()
    (server.data / "pg_hba.conf").write_text("host all all 127.0.0.1/32 trust\n")

    process, server = await postgres_on(state)
    async with run_processes(process):
        assert answer(server) == 42


@as_root
async def test_data_that_an_earlier_release_kept_outside_moves_in(
    state: StateDirectory, open_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D17: an old state directory names its data; the data moves in and the copies go."""
    monkeypatch.setattr(outside_data, "OUTSIDE", open_place)
    process, server = await postgres_on(state)
    async with run_processes(process):
        keep_answer(server)
    old = open_place / "postgres-0123456789abcdef"
    old.mkdir()
    server.data.rename(old / "data")
    (open_place / "pginstall18-1-1").mkdir()
    (state.root / "postgres.name").write_text(old.name)
    lines: list[str] = []

    server = await postgres.locate_server(state, lines.append)
    async with run_processes(postgres_process(server)):
        assert answer(server) == 42

    assert lines == [f"Postgres' data moved from {old} into {state.postgres}"]
    assert not old.exists()
    assert not (state.root / "postgres.name").exists()


@pytest.mark.parametrize("name", ["..", ".", "", "pginstall18-1-1", "../postgres-0123456789abcdef"])
def test_a_state_directory_removes_nothing_outside_but_its_own_data(
    state: StateDirectory, open_place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A cloned project may bring a state directory: the name `..` removed all of `/var/lib`."""
    monkeypatch.setattr(outside_data, "OUTSIDE", open_place / "fairlead")
    for other in ("fairlead/pginstall18-1-1", "fairlead/postgres-ffffffffffffffff/data", "other"):
        (open_place / other).mkdir(parents=True)
    (state.root / outside_data.NAME_FILE).write_text(name)

    moving = outside_data.move_outside_data(state, state.postgres / "data")
    assert asyncio.run(moving) is None

    assert len(list(open_place.rglob("*"))) == 5


async def test_a_crash_while_the_password_is_stored_is_mended_by_the_next_start(
    state: StateDirectory,
) -> None:
    process, server = await postgres_on(state)
    async with run_processes(process):
        keep_answer(server)
    server.access.passwords.file(ADMIN).write_text("")

    process, server = await postgres_on(state)
    async with run_processes(process):
        assert answer(server) == 42


async def test_a_path_too_long_for_a_socket_gets_a_short_private_directory(
    tmp_path: Path,
) -> None:
    state, lines = prepare_state(tmp_path / ("long" * 25)), list[str]()
    server = await postgres.locate_server(state, lines.append)
    place = server.access.socket_directory
    assert stat.S_IMODE(place.stat().st_mode) == 0o700

    async with run_processes(postgres_process(server)):
        keep_answer(server)
    postgres.forget(server)

    assert lines == [f"the state's path does not fit a socket: Postgres listens in {place}"]
    assert not place.exists()


def effective_rights(pid: int | None) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("CapEff:")).split()[1], 16)


def working_directory(pid: int | None) -> Path:
    """Where Postgres works: it always enters the directory of its data."""
    return Path(f"/proc/{pid}/cwd").readlink()


def keep_answer(server: postgres.PostgresServer) -> None:
    with psycopg.connect(server.access.dsn(ADMIN)) as connection:
        connection.execute("create table if not exists kept as select 42 as answer")


def answer(server: postgres.PostgresServer) -> int:
    with psycopg.connect(server.access.dsn(ADMIN)) as connection:
        row = connection.execute("select answer from kept").fetchone()
    assert row is not None
    return int(row[0])


def setting(connection: psycopg.Connection[tuple[str, ...]], name: str) -> str:
    row = connection.execute("select current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return row[0]
