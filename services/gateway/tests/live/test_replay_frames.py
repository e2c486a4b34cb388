"""A replay without models: byte for byte what the models would give, and the same end (docs/adr/0028)."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import START, EntryPage
from fairlead_eventlog.replicas.contiguity import read_contiguous
from fairlead_gateway.http.sse import CHUNK_BYTES_MAX, auto_close
from fairlead_gateway.live.frames import encode_commit
from fairlead_gateway.live.replay_frames import ENTRIES_PER_READ, LogReplay
from fairlead_gateway.log.envelopes import PUBLIC, PUBLIC_AND_NOTICE, EnvelopeTranslator
from fairlead_schema import record as record_module
from fairlead_schema.errors import SessionUnreadable
from fairlead_schema.events import SessionPurged, SyntheticAdded
from fairlead_schema.events.event import Visibility
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.raw_records.raw_commit import raw_commit
from fairlead_schema.record import Commit, Draft, decode_event, encode, record
from fairlead_schema.subjects import Address
from fairlead_testing.read_model import MemoryReadModel

AT = Address(DEFAULT_TENANT, "ses_1")
GOLDEN = Path(__file__).parents[4] / "libs" / "schema" / "tests" / "golden"
GOLDENS: list[dict[str, Any]] = [
    orjson.loads(path.read_bytes()) for path in sorted(GOLDEN.iterdir())
]
# A purge ends a session, and tests of their own have it.
LASTING = [raw for raw in GOLDENS if raw["type"] != SessionPurged.type]


class Writer:
    """Writes commits as JSON, so that they may be of any release."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.seq = 0
        self.payloads: list[bytes] = []

    async def store(self, payload: bytes) -> None:
        self.payloads.append(payload)
        await self.log.append_raw(AT, payload)

    async def write(self, *events: dict[str, Any], **fields: object) -> None:
        placed = []
        for event in events:
            self.seq += 1
            placed.append(event | {"id": f"evt_{self.seq}", "seq": self.seq})
        await self.store(orjson.dumps({"id": f"cmt_{self.seq}", **fields, "events": placed}))


def _translator(visible: frozenset[Visibility]) -> EnvelopeTranslator:
    return EnvelopeTranslator(AT, MemoryReadModel(), visible=visible)


async def replayed(
    log: MemoryLog, visible: frozenset[Visibility] = PUBLIC_AND_NOTICE, after: int = 0
) -> tuple[bytes, str]:
    """What a replay sends, and why it ends."""
    replay = LogReplay(log, AT, _translator(visible), start=START)
    sent = b""
    try:
        async for piece in replay.read(after=after, reach=0):
            sent += piece.frames
    except SessionUnreadable as error:
        return sent, str(error)
    return sent, ""


async def through_models(
    log: MemoryLog, visible: frozenset[Visibility] = PUBLIC_AND_NOTICE, after: int = 0
) -> tuple[bytes, str]:
    """The same with a model of each event."""
    translator, sent = _translator(visible), b""
    try:
        async for stored in read_contiguous(log, AT, after=START, limit=7, reach=0):
            commit = raw_commit(stored.commit)
            sent += (await encode_commit(translator, commit, after=after)).all
    except SessionUnreadable as error:
        return sent, str(error)
    return sent, ""


@pytest.mark.parametrize("visible", [PUBLIC, PUBLIC_AND_NOTICE], ids=["public", "all"])
async def test_every_event_of_every_release_is_sent_as_through_the_models(
    visible: frozenset[Visibility],
) -> None:
    """H-38, I-37."""
    writer = Writer()
    for raw in LASTING:
        await writer.write(raw)
    await writer.write(*LASTING, by="key:ci")

    sent, end = await replayed(writer.log, visible)

    assert (sent, end) == await through_models(writer.log, visible)
    kinds = [decode_event(raw).event.visibility for raw in LASTING]
    assert sent.count(b"\ndata: ") == 2 * sum(kind in visible for kind in kinds)
    assert end == ""


@settings(max_examples=150, deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_repeats_gaps_and_strange_commits_are_sent_as_through_the_models(seed: int) -> None:
    """H-16, H-17, H-18, H-19."""
    chance = random.Random(seed)  # noqa: S311 - a test

    async def compare() -> None:
        writer = Writer()
        await writer.write(*chance.choices(LASTING, k=3))
        for _ in range(chance.randint(1, 12)):
            await _store_something(writer, chance)
        for visible in (PUBLIC, PUBLIC_AND_NOTICE):
            after = chance.randint(0, writer.seq)
            expected = await through_models(writer.log, visible, after)
            assert await replayed(writer.log, visible, after) == expected

    asyncio.run(compare())


async def _store_something(writer: Writer, chance: random.Random) -> None:
    match chance.randrange(16):
        case 0:
            await writer.store(writer.payloads[-1])
        case 1:
            await writer.store(chance.choice(writer.payloads))
        case 2:
            await writer.store(writer.payloads[-1].replace(b'"time":1', b'"time":2'))
        case 3:
            await writer.write(chance.choice(LASTING) | {"unknown": 1})
        case 4:
            raw = chance.choice(LASTING)
            await writer.write(raw | {"data": raw["data"] | {"unknown": {"a": None}}})
        case 5 if chance.random() < 0.3:
            await writer.write(chance.choice(LASTING) | {"version": 9})
        case 6 if chance.random() < 0.3:
            writer.seq += 1
        case 7 if chance.random() < 0.3:
            await writer.write(chance.choice(LASTING), level=99)
        case 8 if chance.random() < 0.3:
            await writer.store(b"no json")
        case 9 if chance.random() < 0.3:
            purged = record((Draft("evt_p", 1, SessionPurged()),), after=writer.seq)
            await writer.store(encode(Commit("cmt_p", purged)))
        case _:
            await writer.write(*chance.choices(LASTING, k=chance.randint(1, 4)))


async def test_an_event_of_an_old_version_is_sent_as_that_of_today(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """H-38."""
    lift = {("synthetic", 0): lambda data: {"messageID": data["id"], "text": data["words"]}}
    monkeypatch.setattr(record_module, "UPCASTERS", lift)
    writer = Writer()
    old = {"type": "synthetic", "version": 0, "time": 1, "data": {"id": "msg_1", "words": "said"}}
    await writer.write(old)

    sent, _ = await replayed(writer.log)

    assert (sent, "") == await through_models(writer.log)
    assert b'"text":"said"' in sent


def _note(length: int) -> dict[str, Any]:
    note = SyntheticAdded(message_id="msg_1", text="x" * length)
    return {"type": note.type, "version": note.version, "time": 1, "data": note.wire()}


async def test_many_small_commits_are_few_pieces_and_large_ones_do_not_pile_up() -> None:
    writer = Writer()
    for _ in range(2 * ENTRIES_PER_READ):
        await writer.write(_note(1))
    for _ in range(4):
        await writer.write(_note(CHUNK_BYTES_MAX))

    replay = LogReplay(writer.log, AT, _translator(PUBLIC), start=START)
    pieces = [piece async for piece in replay.read(after=0, reach=0) if piece.frames]

    assert [piece.seq for piece in pieces] == [128, 256, 257, 258, 259, 260]
    assert b"".join(piece.frames for piece in pieces) == (await through_models(writer.log))[0]


class _SlowLog(MemoryLog):
    """Counts the pages that are being read."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = 0
        self.read_pages = 0

    @override
    async def read_entries(
        self, at: Address, *, after: int, limit: int = 500, reach: int = 0
    ) -> EntryPage:
        self.reading += 1
        try:
            await asyncio.sleep(0)
            return await super().read_entries(at, after=after, limit=limit, reach=reach)
        finally:
            self.reading -= 1
            self.read_pages += 1


async def _first_piece(pieces: AsyncIterator[object]) -> object:
    async with auto_close(pieces):
        return await anext(pieces)


async def test_one_page_is_read_ahead_and_none_is_left_behind() -> None:
    writer = Writer()
    writer.log = log = _SlowLog()
    for _ in range(4 * ENTRIES_PER_READ):
        await writer.write(_note(1))

    await _first_piece(LogReplay(log, AT, _translator(PUBLIC), start=START).read(after=0, reach=0))

    assert log.read_pages <= 2
    assert log.reading == 0
