"""Messages as large as the server takes: stored or refused, and the connection lives on."""

import pytest

from fairlead_eventlog.errors import CommitTooLarge
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.registers.log_status import JetStreamLogStatus
from fairlead_eventlog.jetstream.registers.snapshots import SNAPSHOT_BYTES_MAX
from fairlead_eventlog.jetstream.streams.session_log import JetStreamLog
from fairlead_eventlog.ports import START, Head
from fairlead_eventlog.register_ports import Snapshot
from fairlead_schema.record import Commit, encode, record
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.events import drafts
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration


async def test_a_commit_that_fits_without_its_headers_is_refused(
    server: Server, at: Address
) -> None:
    """The server counts headers too, and closes the connection after a message that is too large."""
    async with open_link(server.address, name="test") as link:
        log, commit_id = JetStreamLog(link, JetStreamLogStatus(link)), ids.commit_id()
        empty = len(encode(Commit(commit_id, record(drafts(1, text=""), after=0))))
        largest = drafts(1, text="x" * (link.client.max_payload - empty))

        with pytest.raises(CommitTooLarge):
            await log.append(at, commit_id, largest, after=START)

        assert await log.append(at, ids.commit_id(), drafts(1), after=START)


async def test_poison_as_large_as_the_server_takes_is_buried(server: Server) -> None:
    """Otherwise it would come again for ever: written as text it is several times as long."""
    async with connect(server.address, name="test") as eventlog:
        await eventlog.dead_letters.add(
            "prompt", "fairlead.prompt.default.x", b"\xff" * 1_000_000, "why"
        )


async def test_a_snapshot_above_its_bound_leaves_the_one_before(
    server: Server, at: Address
) -> None:
    """The session is then loaded from an older snapshot and the commits after it."""
    small = Snapshot(Head(1, 1), b"{}")
    async with connect(server.address, name="test") as eventlog:
        await eventlog.snapshots.store(at, small)
        await eventlog.snapshots.store(at, Snapshot(Head(2, 2), b"x" * (SNAPSHOT_BYTES_MAX + 1)))
        assert await eventlog.snapshots.load(at) == small

        largest = Snapshot(Head(3, 3), b"x" * SNAPSHOT_BYTES_MAX)
        await eventlog.snapshots.store(at, largest)
        assert await eventlog.snapshots.load(at) == largest
