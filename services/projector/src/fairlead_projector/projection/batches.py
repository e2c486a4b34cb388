"""Cuts entries into batches that fit a transaction, and tells which errors refuse a batch. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from psycopg import DataError, Error, IntegrityError, errors

from fairlead_eventlog.ports import LogEntry

# Postgres refuses a value or a statement for its size. A smaller batch may pass.
_TOO_LARGE: Final = (errors.ProgramLimitExceeded, errors.StatementTooComplex, errors.OutOfMemory)
_REFUSED: Final = (DataError, IntegrityError, *_TOO_LARGE)
# Postgres reports a value of more than a gigabyte as an internal error.
_ALLOCATION: Final = "invalid memory alloc request size"


def split_entries(
    entries: Sequence[LogEntry], *, commits_max: int, bytes_max: int
) -> Iterator[Sequence[LogEntry]]:
    """Batches of at most so many commits and bytes. A larger commit is a batch by itself."""
    start, size = 0, 0
    for index, entry in enumerate(entries):
        is_full = index - start >= commits_max or size + len(entry.payload) > bytes_max
        if index > start and is_full:
            yield entries[start:index]
            start, size = index, 0
        size += len(entry.payload)
    if start < len(entries):
        yield entries[start:]


def is_refused(error: Error, *, alone: bool) -> bool:
    """Whether Postgres refuses what a batch contains, and would refuse it again.

    A server without memory says nothing about a commit that is alone: a later try may pass.
    """
    if isinstance(error, errors.OutOfMemory):
        return not alone
    return isinstance(error, _REFUSED) or _ALLOCATION in str(error)


def join_pages(rows: Iterable[bytes], *, bytes_max: int) -> Iterator[bytes]:
    """Rows in JSON as arrays of at most so many bytes. A larger row is an array by itself."""
    page: list[bytes] = []
    size = 0
    for row in rows:
        if page and size + len(row) > bytes_max:
            yield b"[%b]" % b",".join(page)
            page, size = [], 0
        page.append(row)
        size += len(row) + 1
    if page:
        yield b"[%b]" % b",".join(page)
