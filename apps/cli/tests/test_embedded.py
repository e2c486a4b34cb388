"""The embedded servers start, stop, die and come back, and keep their data."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_cli.embedded import child_process, nats
from fairlead_cli.embedded import state_directory as directory
from fairlead_cli.embedded.child_process import ProcessSpec
from fairlead_cli.embedded.nats_auth import key_directory
from fairlead_cli.embedded.postgres import server as postgres
from fairlead_cli.embedded.supervisor import SupervisedProcess
from fairlead_cli.errors import ProcessFailed
from fairlead_eventlog.provision import missing_streams, provision
from fairlead_eventlog.streams import STREAMS
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_testing.embedded_servers import kill_and_wait, nats_on, postgres_on, run_processes

pytestmark = pytest.mark.integration

# A server loses these streams when it dies; provisioning creates them again.
IN_MEMORY = tuple(spec.name for spec in STREAMS if spec.storage == "memory")


def operator(server: nats.NatsServer) -> NatsAddress:
    return key_directory(server.state).service_address(server.url, "operator")


@pytest.fixture
def state(tmp_path: Path) -> directory.StateDirectory:
    return directory.prepare_state(tmp_path / "state")


async def test_nats_keeps_its_streams_through_kill_and_restart(
    state: directory.StateDirectory,
) -> None:
    process, server = nats_on(state)
    async with run_processes(process):
        await provision(operator(server))
        assert (await nats.read_info(server.port))["jetstream"] is True

        await kill_and_wait(process)
        assert await missing_streams(operator(server)) == IN_MEMORY

    process, server = nats_on(state)
    async with run_processes(process):
        assert await missing_streams(operator(server)) == IN_MEMORY


async def test_servers_that_an_earlier_stack_left_are_ended(
    state: directory.StateDirectory,
) -> None:
    old_postgres, server = await postgres_on(state)
    old_nats, _ = nats_on(state)
    async with run_processes(old_postgres, old_nats):
        before = (old_postgres.pid, old_nats.pid)
        await postgres.prepare(server)
        await nats.prepare(nats_on(state)[1])

        assert all(pid is None or not child_process.command_line(pid) for pid in before)


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
