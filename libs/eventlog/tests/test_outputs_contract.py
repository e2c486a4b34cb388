"""Managed outputs, judged on the twin and on JetStream alike."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from hashlib import sha256

import nats
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable, StreamMissing
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.streams.outputs import CHUNK_BYTES
from fairlead_eventlog.quotas.stored_bytes import StoredBytes
from fairlead_eventlog.register_ports import OutputPart, OutputParts, StoredOutput
from fairlead_eventlog.streams import OUTPUT_BUCKET, OUTPUTS
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.nats import Server

AT = Address("default", "ses_outputs")


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def read_output(eventlog: EventLog, tenant: str, id_: str, first: int = 0) -> bytes:
    return b"".join([piece async for piece in eventlog.outputs.get(tenant, id_, first=first)])


async def test_an_output_is_read_as_it_was_put(eventlog: EventLog) -> None:
    """J-30: in whatever pieces it came, from the start or from the middle."""
    id_ = ids.output_id()
    parts = (b"a" * (CHUNK_BYTES - 1), b"", b"bcd" * 7, b"e" * (CHUNK_BYTES + 5))

    put = await eventlog.outputs.put(AT, id_, pieces(*parts), mime="text/plain")

    text = b"".join(parts)
    assert (
        put == await eventlog.outputs.stat("default", id_) == StoredOutput(len(text), "text/plain")
    )
    assert await read_output(eventlog, "default", id_) == text
    for first in (1, CHUNK_BYTES, CHUNK_BYTES + 3, len(text) - 1, len(text), len(text) + 1):
        assert await read_output(eventlog, "default", id_, first) == text[first:]


async def test_an_output_may_come_in_parts(eventlog: EventLog) -> None:
    """A part that comes twice counts once, and nobody reads the output before its end."""
    id_, whole = ids.output_id(), b"a" * 10 + b"b" * 10 + b"c"
    parts = [whole[:10], whole[10:20], whole[20:]]
    for number, data in enumerate(parts):
        for _ in range(2):
            await eventlog.outputs.put_part(AT, id_, OutputPart("try1", number, 10, data))
    assert await eventlog.outputs.stat("default", id_) is None

    digest = sha256(whole).digest()
    await eventlog.outputs.finish_parts(
        AT, id_, OutputParts("try1", 10, len(parts), len(whole), digest, "text/plain")
    )

    assert await eventlog.outputs.stat("default", id_) == StoredOutput(len(whole), "text/plain")
    assert await read_output(eventlog, "default", id_) == whole
    await eventlog.outputs.remove_all(AT)
    assert await eventlog.outputs.stat("default", id_) is None


async def test_the_parts_of_a_try_are_read_before_they_are_an_output_and_dropped(
    eventlog: EventLog,
) -> None:
    """P-23: whoever finishes an upload looks at it first. Parts that are missing are not there."""
    id_, parts = ids.output_id(), OutputParts("try1", 10, 2, 15, b"", "text/plain")
    await eventlog.outputs.put_part(AT, id_, OutputPart("try1", 0, 10, b"a" * 10))

    async def read() -> bytes:
        return b"".join([data async for data in eventlog.outputs.read_parts(AT, id_, parts)])

    assert await read() == b"a" * 10
    await eventlog.outputs.put_part(AT, id_, OutputPart("try1", 1, 10, b"b" * 5))
    assert await read() == b"a" * 10 + b"b" * 5
    await eventlog.outputs.drop_parts(AT, id_, parts)
    async with asyncio.timeout(10):
        while await read() != b"":  # A replica that lags may still have them.
            await asyncio.sleep(0.05)


async def test_parts_that_nobody_finishes_are_removed_and_outputs_stay(
    eventlog: EventLog,
) -> None:
    """P-23: an upload that died, a second try of one that is there, and one that is under way."""
    outputs = eventlog.attachments
    dead, done = ids.output_id(), ids.output_id()
    await outputs.put_part(AT, dead, OutputPart("try1", 0, 4, b"dead"))
    await outputs.put_part(AT, done, OutputPart("lost", 0, 4, b"done"))
    await outputs.put_part(AT, done, OutputPart("try2", 0, 4, b"done"))
    digest = sha256(b"done").digest()
    await outputs.finish_parts(AT, done, OutputParts("try2", 4, 1, 4, digest, "text/plain"))
    whole = ids.output_id()
    await outputs.put(AT, whole, pieces(b"whole"), mime="text/plain")

    assert await outputs.remove_unfinished(idle_s=3600) == 0
    assert await outputs.remove_unfinished(idle_s=0) == 2
    assert await outputs.remove_unfinished(idle_s=0) == 0

    for id_, text in ((done, b"done"), (whole, b"whole")):
        assert b"".join([piece async for piece in outputs.get("default", id_)]) == text
    assert await outputs.stat("default", dead) is None


async def test_nothing_is_kept_under_another_tenants_id(eventlog: EventLog) -> None:
    """J-30: ids are the tenant's own, and a foreign one is not there."""
    id_ = ids.output_id()
    await eventlog.outputs.put(AT, id_, pieces(b"secret"), mime="text/plain")

    assert await eventlog.outputs.stat("other", id_) is None
    assert await read_output(eventlog, "other", id_) == b""
    assert await eventlog.outputs.stat("default", ids.output_id()) is None


async def test_the_outputs_of_a_session_are_dropped_and_its_neighbours_are_not(
    eventlog: EventLog,
) -> None:
    """H-29, J-35: also empty outputs, and also when it is repeated."""
    outputs = eventlog.outputs
    gone = [ids.output_id() for _ in range(3)]
    for id_, parts in zip(gone, ((b"text",), (b"x" * (CHUNK_BYTES + 1),), ()), strict=True):
        await outputs.put(AT, id_, pieces(*parts), mime="text/plain")
    neighbours = [Address("default", f"{AT.session_id}0"), Address("other", AT.session_id)]
    there = [(at, ids.output_id()) for at in neighbours]
    for at, id_ in there:
        await outputs.put(at, id_, pieces(b"text"), mime="text/plain")

    for _ in range(2):
        await outputs.remove_all(AT)
    await outputs.remove_all(Address("default", "ses_without"))

    for id_ in gone:
        assert await outputs.stat("default", id_) is None
        assert await read_output(eventlog, "default", id_) == b""
    for at, id_ in there:
        assert await read_output(eventlog, at.tenant, id_) == b"text"


async def test_an_empty_output_is_there(eventlog: EventLog) -> None:
    """J-30: an empty output exists."""
    id_ = ids.output_id()
    await eventlog.outputs.put(AT, id_, pieces(), mime="image/png")

    assert await eventlog.outputs.stat("default", id_) == StoredOutput(0, "image/png")
    assert await read_output(eventlog, "default", id_) == b""


async def test_a_put_that_breaks_off_leaves_nothing_to_read(eventlog: EventLog) -> None:
    """J-34: half an output is none."""
    id_ = ids.output_id()

    async def break_off() -> AsyncIterator[bytes]:
        yield b"x" * (CHUNK_BYTES * 2)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        await eventlog.outputs.put(AT, id_, break_off(), mime="text/plain")

    assert await eventlog.outputs.stat("default", id_) is None


@pytest.mark.integration
async def test_any_client_of_object_stores_can_read_it(server: Server) -> None:
    """J-30, J-35: the layout is the common one, and the server deletes it after seven days."""
    id_, text = ids.output_id(), b"z" * (CHUNK_BYTES * 2 + 17)
    async with connect(server.address, name="contract") as eventlog:
        await eventlog.outputs.put(AT, id_, pieces(text), mime="text/plain")
    client = await nats.connect(server.url)
    try:
        store = await client.jetstream().object_store(OUTPUT_BUCKET)
        stored = await store.get(f"default/{id_}")
        status = await store.status()
    finally:
        await client.close()

    assert stored.data == text
    assert status.ttl == OUTPUTS.max_age_s == 7 * 24 * 60 * 60


@pytest.mark.integration
async def test_a_large_output_passes_in_constant_memory(server: Server) -> None:
    """J-30: writer and reader hold a few chunks at a time."""
    id_, size = ids.output_id(), 32 * 1024 * 1024

    async def flood() -> AsyncIterator[bytes]:
        for _ in range(size // 65_536):
            yield b"x" * 65_536

    async with connect(server.address, name="contract") as eventlog:
        tracemalloc.start()
        try:
            await eventlog.outputs.put(AT, id_, flood(), mime="text/plain")
            length = 0
            async for piece in eventlog.outputs.get("default", id_):
                length += len(piece)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert length == size
    assert peak < 12 * 1024 * 1024


@pytest.mark.integration
async def test_a_store_that_is_not_there_says_so(own_server: Server) -> None:
    """J-33: unprovisioned: the port's own errors."""
    async with open_link(own_server.address, name="contract") as link:
        await link.api("STREAM.CREATE.OTHER", {"name": "OTHER", "subjects": ["other"]})
    async with connect(own_server.address, name="contract", timeout_s=1) as eventlog:
        with pytest.raises(StreamMissing):
            await eventlog.outputs.stat("default", "out_1")
        with pytest.raises(StreamMissing):
            await eventlog.outputs.remove_all(AT)
        with pytest.raises(LogUnavailable):
            await eventlog.outputs.put(AT, "out_1", pieces(b"x"), mime="text/plain")


async def test_the_stored_bytes_of_a_tenant_follow_its_outputs(eventlog: EventLog) -> None:
    """B11: short outputs count exactly, long ones up to a chunk more, and other tenants not at all."""
    outputs, own = eventlog.outputs, Address("counted", "ses_counted")
    assert await outputs.stored_bytes("counted") == StoredBytes()

    for part in (b"x" * 1000, b"", b"y" * 24):
        await outputs.put(own, ids.output_id(), pieces(part), mime="text/plain")
    await outputs.put(
        Address("counted-not", "ses_1"), ids.output_id(), pieces(b"z" * 99), mime="text/plain"
    )
    assert (await outputs.stored_bytes("counted")).total == 1024

    for number in range(3):
        data = b"p" * (100 if number < 2 else 50)
        await outputs.put_part(own, "out_parts", OutputPart("try1", number, 100, data))
    parts = (await outputs.stored_bytes("counted")).total - 1024
    if parts:  # The twin counts what is whole.
        assert parts == 300, "each part counts as long as the first"
        await outputs.remove_unfinished(idle_s=0)

    long = 2 * CHUNK_BYTES + 5
    await outputs.put(own, ids.output_id(), pieces(b"x" * long), mime="text/plain")
    total = (await outputs.stored_bytes("counted")).total
    assert 1024 + long <= total < 1024 + long + CHUNK_BYTES

    await outputs.remove_all(own)
    assert await outputs.stored_bytes("counted") == StoredBytes()


async def test_the_stored_bytes_of_a_principal_are_those_of_its_own_outputs(
    eventlog: EventLog,
) -> None:
    """B11: whatever characters its name has; an output that names nobody is the tenant's alone."""
    outputs, own = eventlog.outputs, Address("marked", "ses_marked")
    ann, user = "key:ann", "user:https://id.example/Zoë.>*"

    for part, principal in ((b"x" * 100, ann), (b"x" * 20, user), (b"x" * 3, ann), (b"x", None)):
        await outputs.put(
            own, ids.output_id(), pieces(part), mime="text/plain", principal=principal
        )
    stored = await outputs.stored_bytes("marked")
    await outputs.remove_all(own)

    counts = [stored.of(principal) for principal in (ann, user, "key:other", None)]
    assert counts == [103, 20, 0, 124]
    assert (await outputs.stored_bytes("marked")).of(ann) == 0
