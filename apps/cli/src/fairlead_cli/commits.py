"""Sources of encoded commits: all shards, one session, or an exported file."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from pydantic_core import from_json, to_json

from fairlead_cli.errors import CommandError
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.ports import LogEntry
from fairlead_schema.subjects import SHARDS, Address

READER: Final = "verify"
# The last commits of a shard may have been purged with their session, or a leader is elected.
QUIET_S: Final = 3.0
AGAIN_S: Final = 0.5
TRIES_MAX: Final = 10
# The field of a line that holds the bytes of an unreadable commit, in base64.
RAW: Final = "raw"
_COMMIT: Final = b',"commit":'


class EncodedCommit(NamedTuple):
    """One commit of one session, still encoded."""

    at: Address
    payload: bytes


async def read_all(eventlog: EventLog) -> AsyncIterator[EncodedCommit]:
    """Every commit of every shard, up to the present end of each shard."""
    for shard in range(SHARDS):
        async for commit in _read_shard(eventlog, shard, after=0):
            yield commit


async def count_commits(eventlog: EventLog) -> int:
    """The approximate number of commits in the whole log."""
    return sum([await eventlog.shards.last_position(shard) for shard in range(SHARDS)])


async def _read_shard(
    eventlog: EventLog, shard: int, *, after: int
) -> AsyncIterator[EncodedCommit]:
    """The commits up to the present end. A reader that falls silent, or is lost, begins again.

    Raises LogUnavailable if the shard does not come although there is more.
    """
    end, position, tries = await eventlog.shards.last_position(shard), after, 0
    while await _is_behind(eventlog, shard, position, end):
        tries += 1
        if tries > TRIES_MAX:
            raise LogUnavailable(f"shard {shard} cannot be read beyond position {position}")
        try:
            async for batch in _read_until_quiet(eventlog, shard, after=position):
                position, tries = batch[-1].position, 0
                for commit in batch:
                    if commit.position <= end:
                        yield EncodedCommit(commit.at, commit.payload)
                if position >= end:
                    return
        except LogUnavailable:
            await asyncio.sleep(AGAIN_S)


async def _is_behind(eventlog: EventLog, shard: int, position: int, end: int) -> bool:
    """Whether there is a commit up to the end that was not read. Purged commits are not there."""
    if position >= end:
        return False
    following = await eventlog.shards.next_position(shard, after=position)
    return following is not None and following <= end


async def _read_until_quiet(
    eventlog: EventLog, shard: int, *, after: int
) -> AsyncIterator[Sequence[LogEntry]]:
    batches = aiter(eventlog.shards.follow(shard, after=after, reader=READER))
    with suppress(TimeoutError):
        while True:
            async with asyncio.timeout(QUIET_S):
                batch = await anext(batches)
            yield batch


async def read_session(eventlog: EventLog, at: Address) -> AsyncIterator[EncodedCommit]:
    """Every commit of one session, as its bytes stand in the log."""
    async for entry in eventlog.shards.session_entries(at, after=0):
        yield EncodedCommit(at, entry.payload)


def read_export(path: Path) -> Iterator[EncodedCommit]:
    """The commits of a file that `write_commit` wrote. Raises CommandError."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                yield _parse_line(line, path, number)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error}") from error


def write_commit(file: BinaryIO, commit: EncodedCommit) -> None:
    """Write one commit as one line of JSON, byte for byte; what is no JSON is written in base64."""
    line = {"tenant": commit.at.tenant, "session": commit.at.session_id}
    if _is_one_json_line(commit.payload):
        file.write(to_json(line)[:-1] + _COMMIT + commit.payload + b"}\n")
    else:
        file.write(to_json(line | {RAW: b64encode(commit.payload).decode()}) + b"\n")


def _is_one_json_line(payload: bytes) -> bool:
    try:
        return isinstance(from_json(payload), dict) and b"\n" not in payload
    except ValueError:
        return False


def _parse_line(line: bytes, path: Path, number: int) -> EncodedCommit:
    try:
        raw = from_json(line)
        at = Address(raw.pop("tenant"), raw.pop("session"))
        if RAW in raw:
            return EncodedCommit(at, b64decode(raw[RAW]))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise CommandError(f"{path}:{number} is not an exported commit: {error}") from error
    if "commit" in raw:
        return EncodedCommit(at, line.rstrip(b"\n").partition(_COMMIT)[2][:-1])
    # Earlier releases wrote the fields of the commit beside those of its address.
    return EncodedCommit(at, to_json(raw))
