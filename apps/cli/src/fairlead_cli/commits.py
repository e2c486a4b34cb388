"""Commits to verify, from wherever they are: all shards, one session, or an exported file."""

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

from fairlead_cli.errors import CommandError
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import START
from fairlead_schema import subjects
from fairlead_schema.record import RecordError, encode
from fairlead_schema.subjects import SHARDS, Address

READER: Final = "verify"
# The last entries of a shard may have been erased with their session: then nothing more comes.
QUIET_S: Final = 3.0
# Where an export keeps the bytes of what is no commit, in base64.
RAW: Final = "raw"


class Entry(NamedTuple):
    """One commit of one session, still encoded."""

    at: Address
    payload: bytes


async def whole(eventlog: EventLog) -> AsyncIterator[Entry]:
    """Every commit of every shard, up to where each ends now."""
    for shard in range(SHARDS):
        async for entry in _shard(eventlog, shard, after=0):
            yield entry


async def size(eventlog: EventLog) -> int:
    """About how many commits the whole log holds."""
    return sum([await eventlog.shards.last_position(shard) for shard in range(SHARDS)])


async def _shard(eventlog: EventLog, shard: int, *, after: int) -> AsyncIterator[Entry]:
    end, position = await eventlog.shards.last_position(shard), after
    if position >= end:
        return
    batches = aiter(eventlog.shards.follow(shard, after=after, reader=READER))
    with suppress(TimeoutError):
        while position < end:
            async with asyncio.timeout(QUIET_S):
                batch = await anext(batches)
            for entry in batch:
                position = entry.position
                if position <= end:
                    yield Entry(entry.at, entry.payload)


async def one(eventlog: EventLog, at: Address) -> AsyncIterator[Entry]:
    """Every commit of one session; from one that cannot be read on, the bytes of its shard."""
    head, more = START, True
    while more:
        try:
            page = await eventlog.log.read(at, after=head)
        except RecordError:
            break
        for stored in page.commits:
            head = stored.head
            yield Entry(at, encode(stored.commit))
        more = page.more
    if more:
        shard = subjects.shard(at.session_id)
        async for entry in _shard(eventlog, shard, after=head.position):
            if entry.at == at:
                yield entry


def exported(path: Path) -> Iterator[Entry]:
    """The commits of a file that `write` made. Raises CommandError."""
    try:
        with path.open() as lines:
            for number, line in enumerate(lines, start=1):
                yield _read(line, path, number)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error


def write(file: TextIO, entry: Entry) -> None:
    """One commit as one line; what is no JSON object is kept as its bytes."""
    line = {"tenant": entry.at.tenant, "session": entry.at.session_id, **_told(entry.payload)}
    file.write(json.dumps(line) + "\n")


def _told(payload: bytes) -> dict[str, Any]:
    try:
        commit = json.loads(payload)
    except ValueError:
        commit = None
    plain = isinstance(commit, dict) and not commit.keys() & {"tenant", "session", RAW}
    return commit if plain else {RAW: b64encode(payload).decode()}


def _read(line: str, path: Path, number: int) -> Entry:
    try:
        raw = json.loads(line)
        at = Address(raw.pop("tenant"), raw.pop("session"))
        if RAW in raw:
            return Entry(at, b64decode(raw[RAW]))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise CommandError(f"{path}:{number} is no commit that was exported: {error}") from error
    return Entry(at, json.dumps(raw).encode())
