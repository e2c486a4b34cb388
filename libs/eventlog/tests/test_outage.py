"""A server that dies: nothing acknowledged is lost, and everything goes on when it is back."""

import asyncio

import pytest

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.ports import START
from fairlead_eventlog.provision import provision
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.events import drafts
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration


async def test_acknowledged_commits_survive_kill_and_the_tail_goes_on(
    own_server: Server, at: Address
) -> None:
    await provision(own_server.address)
    async with connect(
        own_server.address, name="test", timeout_s=1.0, append_patience_s=2.0
    ) as eventlog:
        seqs: list[int] = []

        async def follow() -> None:
            async for stored in eventlog.log.tail(at, after=0):
                seqs.append(stored.head.seq)  # noqa: PERF401 - another task reads the list

        following = asyncio.create_task(follow())
        head = START
        for _ in range(20):
            head = (await eventlog.log.append(at, ids.commit_id(), drafts(), after=head)).head

        own_server.kill()
        assert eventlog.complaint() is None or "not connected" in str(eventlog.complaint())
        commit_id, events = ids.commit_id(), drafts()
        with pytest.raises(LogUnavailable):
            await eventlog.log.append(at, commit_id, events, after=head)
        own_server.start()

        async with asyncio.timeout(30):
            while eventlog.complaint() is not None:
                await asyncio.sleep(0.05)
            assert (await eventlog.log.head(at)).seq >= head.seq
            stored = await eventlog.log.append(at, commit_id, events, after=head)
            while seqs[-1] != stored.head.seq:
                await asyncio.sleep(0.02)
        following.cancel()

    assert stored.head.seq == 21
    assert seqs == [*range(1, 22)]
