"""A backup of three servers under load, whose leaders die meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from fairlead_cli.backup.backup import write_backup
from fairlead_cli.backup.directory import verify_directory
from fairlead_cli.backup.restore import restore_streams
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.ports import START
from fairlead_eventlog.provision import provision
from fairlead_schema.events import SessionCreated
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.nats_cluster import NatsCluster, run_cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

CREATED = SessionCreated(title="t" * 20_000, project_id="p", location=LocationRef(directory="/w"))


@asynccontextmanager
async def run_writers(cluster: NatsCluster) -> AsyncIterator[list[Address]]:
    """Sessions that are created one after another; those that the log acknowledged."""
    acknowledged: list[Address] = []

    async def write(writer: int) -> None:
        async with connect(cluster.address, name="writer") as eventlog:
            for number in range(1_000_000):
                at = Address("default", f"ses_{writer}x{number}")
                drafts = (Draft(ids.event_id(), 1, CREATED),)
                with suppress(LogError):
                    await eventlog.log.append(at, ids.commit_id(), drafts, after=START)
                    acknowledged.append(at)

    writers = [asyncio.create_task(write(writer)) for writer in range(4)]
    try:
        yield acknowledged
    finally:
        for each in writers:
            each.cancel()
        await asyncio.gather(*writers, return_exceptions=True)


async def test_a_backup_of_a_cluster_outlives_the_death_of_leaders(tmp_path: Path) -> None:
    """Three copies: the leader of a shard is killed while its shard is copied."""
    with run_cluster(tmp_path / "one") as cluster:
        await cluster.wait_until_ready()
        await cluster.provision()
        async with run_writers(cluster) as acknowledged:
            async with asyncio.timeout(60):
                while len(acknowledged) < 400:
                    await asyncio.sleep(0.05)
            promised = tuple(acknowledged)
            copying = asyncio.create_task(
                write_backup(cluster.address, tmp_path / "backup", lambda _line: None)
            )
            node = await cluster.find_leader("LOG-0")
            node.kill()
            manifest = await asyncio.wait_for(copying, 240)
        node.start()
    assert manifest.commits >= len(promised)

    with run_cluster(tmp_path / "two") as cluster:
        await cluster.wait_until_ready()
        verified = verify_directory(tmp_path / "backup")
        await restore_streams(
            *(cluster.address, tmp_path / "backup", verified),
            replicas=3,
            progress=lambda _line: None,
        )
        await provision(cluster.address, replicas=3)
        async with connect(cluster.address, name="test") as eventlog:
            missing = [at for at in promised if await eventlog.log.head(at) == START]
    assert not missing
