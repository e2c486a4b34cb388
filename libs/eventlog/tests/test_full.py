"""A server without room: a typed refusal, nothing acknowledged is lost, and room mends it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.ports import START, Head
from fairlead_eventlog.provision import provision
from fairlead_schema.events import PromptAdmitted
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration

AT = Address("default", "ses_full")
LARGE = "x" * 400_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path, free_port(), room="4MB")
    running.start()
    try:
        yield running
    finally:
        running.kill()


def large_drafts() -> tuple[Draft, ...]:
    admitted = PromptAdmitted(
        message_id=ids.message_id(), prompt=Prompt(text=LARGE), delivery="steer"
    )
    return (Draft(ids.event_id(), ids.now_ms(), admitted),)


async def fill_server(
    address: NatsAddress,
) -> tuple[Head, str, tuple[Draft, ...], LogUnavailable]:
    """Append until the server has no room; the last head, the commit it did not take, and why."""
    head = START
    async with connect(address, name="test") as eventlog:
        for _ in range(50):
            commit_id, drafts = ids.commit_id(), large_drafts()
            try:
                head = (await eventlog.log.append(AT, commit_id, drafts, after=head)).head
            except LogUnavailable as error:
                return head, commit_id, drafts, error
    raise AssertionError("the server took everything")


async def read_seqs(eventlog: EventLog) -> list[int]:
    seqs: list[int] = []
    head, more = START, True
    while more:
        commits, more = await eventlog.log.read(AT, after=head)
        seqs += [event.seq for stored in commits for event in stored.commit.events]
        head = commits[-1].head if commits else head
    return seqs


async def test_a_full_server_refuses_loses_nothing_and_goes_on_with_room(server: Server) -> None:
    """What was acknowledged is there, what was refused is not, and the same commit fits later."""
    await provision(server.address)
    head, commit_id, drafts, refused = await fill_server(server.address)
    assert head.seq > 1
    assert "NATS has no room for LOG-" in str(refused)
    assert "raise max_file_store of nats-server" in str(refused)
    server.kill()
    server.room = "64MB"
    server.start()

    async with connect(server.address, name="test") as eventlog:
        assert await eventlog.log.head(AT) == head
        stored = await eventlog.log.append(AT, commit_id, drafts, after=head)
        stored_seqs = await read_seqs(eventlog)

    assert stored.head.seq == head.seq + 1
    assert stored_seqs == list(range(1, head.seq + 2))


@pytest.mark.parametrize("limit", [{"max_bytes": 1}, {"max_msgs": 1}], ids=["bytes", "messages"])
async def test_a_full_stream_is_no_second_message(server: Server, limit: dict[str, int]) -> None:
    """A20: the server has one code for both, and a full stream holds no wake and no binding."""
    await provision(server.address)
    async with (
        connect(server.address, name="test") as eventlog,
        open_link(server.address, name="operator") as link,
    ):
        awake = Address("default", ids.session_id())
        assert await eventlog.wakes.wake(awake)
        assert await eventlog.message_ids.bind("default", "msg_known", "ses_one") == "ses_one"
        for name in ("WAKES", "MESSAGES"):
            config = (await link.api(f"STREAM.INFO.{name}"))["config"]
            await link.api(f"STREAM.UPDATE.{name}", config | limit)

        assert not await eventlog.wakes.wake(awake), "this one is a second message"
        with pytest.raises(LogUnavailable, match="exceeded"):
            await eventlog.wakes.wake(AT)
        with pytest.raises(LogUnavailable, match="exceeded"):
            await eventlog.message_ids.bind("default", "msg_new", "ses_two")
        assert await eventlog.message_ids.bind("default", "msg_known", "ses_two") == "ses_one"
