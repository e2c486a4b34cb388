"""Restarts of processes, free ports, and the lock of a state directory."""

import asyncio
import shutil
import socket
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlead_cli.embedded import ports, state_directory
from fairlead_cli.embedded.child_process import ProcessSpec
from fairlead_cli.embedded.supervisor import DELAY_S_MAX, SETTLED_S, Deaths, SupervisedProcess
from fairlead_cli.errors import DiskFull, PortTaken, StateLocked, StateUnusable


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_restarts_slow_down_to_a_limit() -> None:
    deaths, delays = Deaths(), []
    for _ in range(7):
        deaths = deaths.after(0.1)
        delays.append(deaths.delay_s)

    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, DELAY_S_MAX, DELAY_S_MAX]


def test_a_process_that_had_settled_restarts_fast_again() -> None:
    assert Deaths(6).after(SETTLED_S).delay_s == 0.2


class Server:
    """A process whose restore step never ends by itself."""

    def __init__(self, log: Path) -> None:
        self.starts = 0
        self.restoring = asyncio.Event()
        self._log = log

    async def prepare(self) -> ProcessSpec:
        self.starts += 1
        return ProcessSpec(argv=("/bin/sleep", "60"), log=self._log, cwd=self._log.parent)

    async def restore(self) -> None:
        self.restoring.set()
        await asyncio.Event().wait()


async def _ready() -> None:
    return None


async def test_one_that_dies_again_before_it_was_revived_is_started_again(tmp_path: Path) -> None:
    """The restore step needs the process, so a new death must end the step."""
    server = Server(tmp_path / "log")
    process = SupervisedProcess("server", 0, server.prepare, _ready, restore=server.restore)
    await process.start()
    async with asyncio.timeout(30):
        for _ in range(2):
            process.kill(9)
            await server.restoring.wait()
            server.restoring.clear()

        assert server.starts == 3
        assert await process.why_not_ready() == "restarting"
        await process.stop()


def test_ports_for_servers_are_not_those_of_connections() -> None:
    """A killed server finds its port free, because connections use other ports."""
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        ephemeral_port = connection.getsockname()[1]

    low, high = ports.EPHEMERAL_RANGE_FILE.read_text().split()
    assert int(low) <= ephemeral_port <= int(high)
    assert all(not int(low) <= port <= int(high) for port in ports.free_ports(50))


def test_a_taken_port_is_passed_over() -> None:
    first = ports.free_port()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", first + 1))
        listener.listen()

        assert first + 1 not in ports.free_ports(3)


def test_a_taken_port_is_named() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]

        with pytest.raises(PortTaken, match=f"port {port} .*--port"):
            ports.claim_port(port, "HTTP", "--port")


def test_port_0_is_any_free_one() -> None:
    assert not ports.is_taken(ports.claim_port(0, "HTTP", "--port"))


def test_free_ports_differ() -> None:
    assert len(set(ports.free_ports(20))) == 20


def test_one_stack_per_state(tmp_path: Path) -> None:
    directory = state_directory.prepare_state(tmp_path / "state")

    with (
        state_directory.lock_state(directory),
        pytest.raises(StateLocked, match="pid"),
        state_directory.lock_state(directory),
    ):
        pass

    with state_directory.lock_state(directory):
        assert state_directory.lock_owner(directory.root) is not None
    assert state_directory.lock_owner(directory.root) is None


def test_addresses_are_true_only_while_the_stack_runs(tmp_path: Path) -> None:
    directory = state_directory.prepare_state(tmp_path)
    with state_directory.lock_state(directory):
        state_directory.save_addresses(directory, {"http": "http://127.0.0.1:1"})
        assert state_directory.load_addresses(tmp_path) == {"http": "http://127.0.0.1:1"}

    assert state_directory.load_addresses(tmp_path) == {}


def test_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(100, 0, 150 * 1024 * 1024))

    with pytest.raises(DiskFull, match="150 MB free and needs 200 MB"):
        state_directory.prepare_state(tmp_path)


def test_a_state_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").touch()

    with pytest.raises(StateUnusable, match="--state"):
        state_directory.prepare_state(tmp_path / "state")


def test_logs_that_grew_are_put_aside(tmp_path: Path) -> None:
    directory = state_directory.prepare_state(tmp_path)
    with directory.log_path("runner").open("wb") as log:
        log.truncate(state_directory.LOG_BYTES_MAX + 1)

    state_directory.prepare_state(tmp_path)

    assert not directory.log_path("runner").exists()
    assert (directory.logs / "runner-0.log.1").exists()
