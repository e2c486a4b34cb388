"""The embedded servers start, stop, die and come back, and keep their data."""

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

from fairlead_cli.embedded import child_process, nats, postgres
from fairlead_cli.embedded import state_directory as directory
from fairlead_cli.embedded.child_process import ProcessSpec
from fairlead_cli.embedded.ports import free_ports
from fairlead_cli.embedded.supervisor import SupervisedProcess, stop_all, wait_all_ready
from fairlead_cli.errors import ProcessFailed
from fairlead_eventlog.provision import missing_streams, provision
from fairlead_eventlog.streams import STREAMS
from fairlead_testing.directories import open_to_others

pytestmark = pytest.mark.integration

# A server loses these streams when it dies; provisioning creates them again.
IN_MEMORY = tuple(spec.name for spec in STREAMS if spec.storage == "memory")
UNPRIVILEGED = """
import asyncio, site, sys
site.addsitedir(sys.argv[1])
sys.path[:0] = sys.argv[3:]
from pathlib import Path
import psycopg
from fairlead_cli.embedded import postgres
from fairlead_cli.embedded.ports import free_port
from fairlead_cli.embedded.state_directory import prepare_state
from fairlead_cli.embedded.supervisor import SupervisedProcess

async def main():
    server = postgres.locate_server(prepare_state(Path(sys.argv[2])), free_port())
    process = SupervisedProcess(
        "postgres", 0, lambda: postgres.prepare(server), lambda: postgres.why_not_ready(server.port)
    )
    await process.start()
    await process.wait_ready()
    with psycopg.connect(server.dsn) as connection:
        print(connection.execute("select 42").fetchone()[0])
    await process.stop()

asyncio.run(main())
"""


@pytest.fixture
def state(tmp_path: Path) -> directory.StateDirectory:
    """A state directory that another user can enter, as `up` makes it."""
    return directory.prepare_state(open_to_others(tmp_path) / "state")


@asynccontextmanager
async def run_processes(*processes: SupervisedProcess) -> AsyncIterator[None]:
    try:
        for process in processes:
            await process.start()
        await wait_all_ready(processes, print)
        yield
    finally:
        await stop_all(processes)


def nats_on(state: directory.StateDirectory) -> tuple[SupervisedProcess, nats.NatsServer]:
    port, monitor = free_ports(2)
    server = nats.NatsServer(state, port, monitor)
    return SupervisedProcess(
        "nats", 0, lambda: nats.prepare(server), lambda: nats.why_not_ready(port)
    ), server


def postgres_on(
    state: directory.StateDirectory,
) -> tuple[SupervisedProcess, postgres.PostgresServer]:
    server = postgres.locate_server(state, free_ports(1)[0])
    return (
        SupervisedProcess(
            "postgres",
            0,
            lambda: postgres.prepare(server),
            lambda: postgres.why_not_ready(server.port),
        ),
        server,
    )


async def kill_and_wait(process: SupervisedProcess) -> None:
    before = process.pid
    process.kill(signal.SIGKILL)
    async with asyncio.timeout(10):
        while process.pid in {before, None}:
            await asyncio.sleep(0.02)
    await process.wait_ready()


async def test_nats_keeps_its_streams_through_kill_and_restart(
    state: directory.StateDirectory,
) -> None:
    process, server = nats_on(state)
    async with run_processes(process):
        await provision(server.url)
        assert (await nats.read_info(server.port))["jetstream"] is True

        await kill_and_wait(process)
        assert await missing_streams(server.url) == IN_MEMORY

    process, server = nats_on(state)
    async with run_processes(process):
        assert await missing_streams(server.url) == IN_MEMORY


async def test_postgres_keeps_its_rows_through_kill_and_restart(
    state: directory.StateDirectory,
) -> None:
    process, server = postgres_on(state)
    async with run_processes(process):
        with psycopg.connect(server.dsn) as connection:
            connection.execute("create table kept as select 42 as answer")
        await kill_and_wait(process)
        assert _answer(server) == 42

    process, server = postgres_on(state)
    async with run_processes(process):
        assert _answer(server) == 42


async def test_postgres_does_not_run_as_root(state: directory.StateDirectory) -> None:
    process, _server = postgres_on(state)
    async with run_processes(process):
        assert process.pid is not None
        owner = os.stat(f"/proc/{process.pid}").st_uid  # noqa: PTH116 - no path to keep

    assert owner == (postgres.NOBODY if os.geteuid() == 0 else os.geteuid())


async def test_a_reused_pid_does_not_keep_postgres_down(state: directory.StateDirectory) -> None:
    process, server = postgres_on(state)
    async with run_processes(process):
        pass
    (server.data / "postmaster.pid").write_text(f"{os.getpid()}\n{server.data}\n0\n0\n")

    process, _ = postgres_on(state)
    async with run_processes(process):
        assert process.deaths.count == 0


async def test_servers_that_an_earlier_stack_left_are_ended(
    state: directory.StateDirectory,
) -> None:
    old_postgres, _ = postgres_on(state)
    old_nats, _ = nats_on(state)
    async with run_processes(old_postgres, old_nats):
        before = (old_postgres.pid, old_nats.pid)
        spec = await postgres.prepare(postgres_on(state)[1])
        await nats.prepare(nats_on(state)[1])

        assert all(pid is None or not child_process.command_line(pid) for pid in before)
        assert spec.uid in {postgres.NOBODY, -1}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_postgres_runs_as_an_ordinary_user_too(state: directory.StateDirectory) -> None:
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
    home = state.root / "ordinary"
    home.mkdir()
    os.chown(home, 1, 1)

    result = subprocess.run(
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

    assert (result.returncode, result.stdout.strip()) == (0, "42"), result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root meets directories closed to nobody")
async def test_data_behind_a_closed_directory_moves_where_postgres_reaches_it(
    state: directory.StateDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "SHARED", tmp_path / "shared")
    state.root.chmod(0o700)

    process, server = postgres_on(state)
    async with run_processes(process):
        pass
    again = postgres.locate_server(state, 1)

    assert server.home.parent == tmp_path / "shared"
    assert again.home == server.home


async def test_what_cannot_start_is_named_with_its_log(state: directory.StateDirectory) -> None:
    spec = ProcessSpec(argv=("/bin/false",), log=state.log_path("broken"), cwd=state.root)

    async def prepare() -> ProcessSpec:
        return spec

    async def probe() -> str | None:
        return "not there"

    with pytest.raises(ProcessFailed, match=r"broken-0 .*exit code 1.*broken-0\.log"):
        async with run_processes(SupervisedProcess("broken", 0, prepare, probe)):
            pass


async def test_children_die_with_their_parent(state: directory.StateDirectory) -> None:
    script = f"""
import asyncio, os, sys
from pathlib import Path
from fairlead_cli.embedded.child_process import ProcessSpec, spawn
async def main():
    spec = ProcessSpec(("/bin/sleep", "600"), Path({str(state.log_path("sleep"))!r}), Path("/"))
    print((await spawn(spec)).pid, flush=True)
    await asyncio.sleep(0.3)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    result = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    pid = int(result.stdout)
    for _ in range(100):
        if child_process.command_line(pid) is None:
            break
        await asyncio.sleep(0.02)

    assert child_process.command_line(pid) is None


def _answer(server: postgres.PostgresServer) -> int:
    with psycopg.connect(server.dsn) as connection:
        row = connection.execute("select answer from kept").fetchone()
    assert row is not None
    return int(row[0])
