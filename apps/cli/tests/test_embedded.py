"""The embedded servers: start, stop, die, come back, and keep what they were given."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from fairlead_cli.embedded import child, nats, postgres
from fairlead_cli.embedded import state as directory
from fairlead_cli.embedded.child import Command
from fairlead_cli.embedded.ports import free_ports
from fairlead_cli.embedded.supervisor import Kept, all_ready, stop_all
from fairlead_cli.errors import ProcessFailed
from fairlead_eventlog.provision import missing_streams, provision
from fairlead_eventlog.streams import STREAMS
from fairlead_testing.places import opened

pytestmark = pytest.mark.integration

# A server forgets these when it dies; provisioning puts them back.
IN_MEMORY = tuple(spec.name for spec in STREAMS if spec.storage == "memory")
UNPRIVILEGED = """
import asyncio, site, sys
site.addsitedir(sys.argv[1])
sys.path[:0] = sys.argv[3:]
from pathlib import Path
import psycopg
from fairlead_cli.embedded import postgres, state
from fairlead_cli.embedded.ports import free_port
from fairlead_cli.embedded.supervisor import Kept

async def main():
    server = postgres.place(state.prepare(Path(sys.argv[2])), free_port())
    kept = Kept("postgres", 0, lambda: postgres.prepare(server), lambda: postgres.complaint(server.port))
    await kept.start()
    await kept.ready()
    with psycopg.connect(server.dsn) as connection:
        print(connection.execute("select 42").fetchone()[0])
    await kept.stop()

asyncio.run(main())
"""


@pytest.fixture
def state(tmp_path: Path) -> directory.State:
    """A state that another user can reach, as `up` makes it."""
    return directory.prepare(opened(tmp_path) / "state")


@asynccontextmanager
async def kept(*processes: Kept) -> AsyncIterator[None]:
    try:
        for process in processes:
            await process.start()
        await all_ready(processes, print)
        yield
    finally:
        await stop_all(processes)


def nats_on(state: directory.State) -> tuple[Kept, nats.Nats]:
    port, monitor = free_ports(2)
    server = nats.Nats(state, port, monitor)
    return Kept("nats", 0, lambda: nats.prepare(server), lambda: nats.complaint(port)), server


def postgres_on(state: directory.State) -> tuple[Kept, postgres.Postgres]:
    server = postgres.place(state, free_ports(1)[0])
    return (
        Kept(
            "postgres", 0, lambda: postgres.prepare(server), lambda: postgres.complaint(server.port)
        ),
        server,
    )


async def killed(process: Kept) -> None:
    before = process.pid
    process.kill(signal.SIGKILL)
    async with asyncio.timeout(10):
        while process.pid in {before, None}:
            await asyncio.sleep(0.02)
    await process.ready()


async def test_nats_keeps_its_streams_through_kill_and_restart(state: directory.State) -> None:
    process, server = nats_on(state)
    async with kept(process):
        await provision(server.url)
        assert (await nats.read_info(server.port))["jetstream"] is True

        await killed(process)
        assert await missing_streams(server.url) == IN_MEMORY

    process, server = nats_on(state)
    async with kept(process):
        assert await missing_streams(server.url) == IN_MEMORY


async def test_postgres_keeps_its_rows_through_kill_and_restart(state: directory.State) -> None:
    process, server = postgres_on(state)
    async with kept(process):
        with psycopg.connect(server.dsn) as connection:
            connection.execute("create table kept as select 42 as answer")
        await killed(process)
        assert _answer(server) == 42

    process, server = postgres_on(state)
    async with kept(process):
        assert _answer(server) == 42


async def test_postgres_does_not_run_as_root(state: directory.State) -> None:
    process, _server = postgres_on(state)
    async with kept(process):
        assert process.pid is not None
        owner = os.stat(f"/proc/{process.pid}").st_uid  # noqa: PTH116 - no path to keep

    assert owner == (postgres.NOBODY if os.geteuid() == 0 else os.geteuid())


async def test_a_reused_pid_does_not_keep_postgres_down(state: directory.State) -> None:
    process, server = postgres_on(state)
    async with kept(process):
        pass
    (server.data / "postmaster.pid").write_text(f"{os.getpid()}\n{server.data}\n0\n0\n")

    process, _ = postgres_on(state)
    async with kept(process):
        assert process.deaths.count == 0


async def test_servers_that_an_earlier_stack_left_are_ended(state: directory.State) -> None:
    left, _ = postgres_on(state)
    left_nats, _ = nats_on(state)
    async with kept(left, left_nats):
        before = (left.pid, left_nats.pid)
        command = await postgres.prepare(postgres_on(state)[1])
        await nats.prepare(nats_on(state)[1])

        assert all(pid is None or not child.command_line(pid) for pid in before)
        assert command.uid in {postgres.NOBODY, -1}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_postgres_runs_as_an_ordinary_user_too(state: directory.State) -> None:
    python = Path("/usr/bin/python3")
    wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.stdout.strip() != wanted:
        pytest.skip("no system Python of this version")
    home = state.root / "ordinary"
    home.mkdir()
    os.chown(home, 1, 1)

    ran = subprocess.run(
        [
            *("setpriv", "--reuid=1", "--regid=1", "--clear-groups"),
            *(python, "-c", UNPRIVILEGED, Path(psycopg.__file__).parents[1], home / "state"),
            *(path for path in sys.path if path.endswith("src")),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
    )

    assert (ran.returncode, ran.stdout.strip()) == (0, "42"), ran.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root meets directories closed to nobody")
async def test_data_behind_a_closed_directory_moves_where_postgres_reaches_it(
    state: directory.State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "SHARED", tmp_path / "shared")
    state.root.chmod(0o700)

    process, server = postgres_on(state)
    async with kept(process):
        pass
    again = postgres.place(state, 1)

    assert server.home.parent == tmp_path / "shared"
    assert again.home == server.home


async def test_what_cannot_start_is_named_with_its_log(state: directory.State) -> None:
    command = Command(argv=("/bin/false",), log=state.log_path("broken"), cwd=state.root)

    async def prepare() -> Command:
        return command

    async def probe() -> str | None:
        return "not there"

    with pytest.raises(ProcessFailed, match=r"broken-0 .*exit code 1.*broken-0\.log"):
        async with kept(Kept("broken", 0, prepare, probe)):
            pass


async def test_children_die_with_their_parent(state: directory.State) -> None:
    script = f"""
import asyncio, os, sys
from pathlib import Path
from fairlead_cli.embedded.child import Command, spawn
async def main():
    command = Command(("/bin/sleep", "600"), Path({str(state.log_path("sleep"))!r}), Path("/"))
    print((await spawn(command)).pid, flush=True)
    await asyncio.sleep(0.3)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    pid = int(ran.stdout)
    for _ in range(100):
        if child.command_line(pid) is None:
            break
        await asyncio.sleep(0.02)

    assert child.command_line(pid) is None


def _answer(server: postgres.Postgres) -> int:
    with psycopg.connect(server.dsn) as connection:
        row = connection.execute("select answer from kept").fetchone()
    assert row is not None
    return int(row[0])
