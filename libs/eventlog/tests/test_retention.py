"""Limits of the streams: applied, never narrowed by accident, and a full log can still be purged. A10."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.condition.log_room import is_in_reserve
from fairlead_eventlog.condition.retention import Retention, describe_limits, limited_streams
from fairlead_eventlog.condition.stream_sizes import StreamSize
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogFull, LogUnavailable
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.ports import START, Head
from fairlead_eventlog.provision import provision
from fairlead_eventlog.streams import DAY_S, MESSAGES, log_stream
from fairlead_schema import subjects
from fairlead_schema.events import PromptAdmitted, SessionEvent, SessionPurged
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft
from fairlead_schema.subjects import SHARDS, Address
from fairlead_service import ids
from fairlead_testing.nats import Server

AT = Address("default", "ses_full")
SHARD_BYTES = 2 * 1024 * 1024
SMALL = Retention(log_bytes=SHARD_BYTES * SHARDS, feed_days=30, feed_bytes=10**6)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path, free_port())
    running.start()
    try:
        yield running
    finally:
        running.kill()


def test_a_full_log_refuses_and_never_drops() -> None:
    """A10: the other streams drop their oldest messages; a commit is the truth."""
    specs = {spec.name: spec for spec in limited_streams(SMALL)}

    log = specs[log_stream(0)]
    assert (log.max_bytes, log.max_age_s, log.discard) == (SHARD_BYTES, 0, "new")
    assert (specs["EVENTS"].max_bytes, specs["EVENTS"].max_age_s) == (10**6, 30 * DAY_S)
    assert specs["EVENTS"].discard == "old"


def test_every_store_that_grows_has_a_setting() -> None:
    """Each is limited by its own setting, and zero means no limit."""
    limits = {
        "attachment_bytes": 1,
        "receipt_bytes": 2,
        "dead_letter_bytes": 3,
        "snapshot_bytes": 4,
    }
    specs = {spec.name: spec for spec in limited_streams(Retention(snapshot_days=5, **limits))}

    assert specs["OBJ_fairlead-attachment"].max_bytes == 1
    assert specs["RECEIPTS"].max_bytes == 2
    assert specs["DEAD"].max_bytes == 3
    snapshots = specs["KV_fairlead-snapshot"]
    assert (snapshots.max_bytes, snapshots.max_age_s) == (4, 5 * DAY_S)
    assert describe_limits(snapshots.max_age_s, snapshots.max_bytes) == "5 days and 4 bytes"
    assert describe_limits(0, -1) == ""


def test_the_register_of_message_ids_is_bounded_by_default() -> None:
    """A10: each session remembers its own ids for ever; only other sessions may use one again."""
    specs = {spec.name: spec for spec in limited_streams()}

    assert specs[MESSAGES.name].max_age_s == 90 * DAY_S
    assert specs[log_stream(0)].max_bytes == -1
    assert specs["EVENTS"].max_age_s == 0


@pytest.mark.parametrize(
    ("used", "allowed", "only_purges"),
    [
        (10**9, 0, False),
        (94 * 2**20, 100 * 2**20, False),
        (96 * 2**20, 100 * 2**20, True),
        (2**20 - 70_000, 2**20, False),
        (2**20 - 60_000, 2**20, True),
    ],
)
def test_a_part_of_a_limited_log_is_for_purges(
    *, used: int, allowed: int, only_purges: bool
) -> None:
    assert is_in_reserve(StreamSize("LOG-0", used, allowed)) is only_purges


@pytest.mark.integration
async def test_narrower_limits_need_to_be_asked_for(server: Server) -> None:
    """A10: an upgrade drops nothing that an earlier release kept for ever."""
    forever = Retention(message_id_days=0)
    await provision(server.address, retention=forever)
    lines: list[str] = []
    await provision(server.address, progress=lines.append)
    kept = await max_ages(server)
    await provision(server.address, shrink=True)
    shrunk = await max_ages(server)
    await provision(server.address, retention=forever)

    said = "stream MESSAGES (90 days): unchanged, max_age wider than configured: `--shrink` drops the rest"
    assert said in lines
    assert (kept, shrunk) == (0, 90 * DAY_S)
    assert await max_ages(server) == 0


async def max_ages(server: Server) -> int:
    async with open_link(server.address, name="test") as link:
        config = (await link.api(f"STREAM.INFO.{MESSAGES.name}"))["config"]
    return int(config["max_age"]) // 10**9


@pytest.mark.integration
async def test_a_log_that_exists_gets_a_limit_and_then_keeps_room_for_a_purge(
    server: Server,
) -> None:
    """A10: commits are refused with the cause and the cure, a purge fits, and room mends it."""
    await provision(server.address)
    await provision(server.address, retention=SMALL, shrink=True)
    async with connect(server.address, name="test") as eventlog:
        head, refused = await fill(eventlog)
        assert "purge sessions, or raise streams.log_bytes" in str(refused)

        purged = await append(eventlog, head, SessionPurged())
        await eventlog.log.erase(AT)
        async with asyncio.timeout(20):
            while True:
                try:
                    await append(eventlog, START, prompt(1000), at=same_shard())
                    break
                except LogUnavailable:
                    await asyncio.sleep(0.1)

    assert isinstance(refused, LogFull)
    assert purged.seq == head.seq + 1


async def fill(eventlog: EventLog) -> tuple[Head, LogUnavailable]:
    """Append until the log takes no more; the last head, and the refusal."""
    head = START
    for _ in range(500):
        try:
            head = await append(eventlog, head, prompt(20_000))
        except LogUnavailable as refused:
            return head, refused
        await asyncio.sleep(0.02)
    raise AssertionError("the log took everything")


def prompt(length: int) -> PromptAdmitted:
    return PromptAdmitted(
        message_id=ids.message_id(), prompt=Prompt(text="x" * length), delivery="steer"
    )


async def append(eventlog: EventLog, head: Head, event: SessionEvent, at: Address = AT) -> Head:
    drafts = (Draft(ids.event_id(), ids.now_ms(), event),)
    return (await eventlog.log.append(at, ids.commit_id(), drafts, after=head)).head


def same_shard() -> Address:
    """Another session whose commits are in the same stream."""
    wanted = subjects.shard(AT.session_id)
    names = (f"ses_{number}" for number in range(1000))
    return Address("default", next(name for name in names if subjects.shard(name) == wanted))
