"""The disk of one node is full: the others go on, the doctor names the node, and it catches up when there is room."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from fairlead_cli.embedded.nats import NODE_PREFIX, STORE
from fairlead_testing.cluster_roles import find_leader, wait_until_whole
from fairlead_testing.stack import Stack, check_log, event_types, stack
from tests.chaos.test_chaos import CLIENT_LEAK

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings(CLIENT_LEAK),
]

NODES: Final = 3
DISK_BYTES: Final = 96 * 1024 * 1024


@contextmanager
def small_disks(state: Path) -> Iterator[list[Path]]:
    """A file system of its own for the store of each node, so that any of them can be full."""
    disks = [state / "nats" / f"{NODE_PREFIX}{index}" / STORE for index in range(NODES)]
    mounted: list[Path] = []
    try:
        for disk in disks:
            disk.mkdir(parents=True)
            command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)]
            if subprocess.run(command, check=False, capture_output=True).returncode:
                pytest.skip("needs the right to mount a tmpfs")
            mounted.append(disk)
        yield disks
    finally:
        for disk in mounted:
            subprocess.run(["umount", "--lazy", str(disk)], check=False)


def fill(disk: Path) -> Path:
    """Write until nothing fits any more."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096):
            while True:
                try:
                    if file.write(bytes(size)) < size:
                        break
                except OSError:
                    break
    return filler


async def doctor(up: Stack) -> dict[str, dict[str, str]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "doctor", "--json", "--state", up.up.state.root),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    findings = [json.loads(line) for line in output.splitlines()]
    return {finding["name"]: finding for finding in findings}


async def converse(up: Stack, count: int) -> list[str]:
    """Sessions with one answered prompt each; large ones, so that every disk has to grow."""
    sessions = []
    for number in range(count):
        session = await up.session()
        text = f"{'a long way ' * 9_000} {number}"
        async with asyncio.timeout(60):
            while "data" not in await up.ask(
                "session.prompt",
                {"id": f"msg_{session}", "sessionID": session, "prompt": {"text": text}},
            ):
                await asyncio.sleep(0.5)
        sessions.append(session)
    for session in sessions:
        await up.wait_until_rested(session)
    return sessions


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to mount a tmpfs")
async def test_a_full_disk_of_one_node_stops_nobody_and_is_named(tmp_path: Path) -> None:
    """It leads shards when its disk fills: others take them over, and nothing acknowledged is lost."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    with small_disks(tmp_path / "state") as disks:
        async with stack(tmp_path / "state", nats_nodes=NODES, sim=True) as up:
            sessions = await converse(up, 2)
            node = await find_leader(up.up, "LOG-0")
            filler = fill(disks[node])

            sessions += await converse(up, 16)
            copies = (await doctor(up))["copies"]

            filler.unlink()
            up.up.kill("nats", node, signal.SIGKILL)
            await wait_until_whole(up.up)
            sessions += await converse(up, 2)
            for session in sessions:
                log = await up.events(session)
                check_log(log)
                assert event_types(log).count("step.ended") == 1
            healed = (await doctor(up))["copies"]
    assert copies["status"] == "warn", copies
    assert f"fairlead-{node}" in copies["detail"]
    assert "disk" in copies["mend"]
    assert healed["status"] == "ok", healed
