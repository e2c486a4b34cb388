"""The files of stored sessions: written so that a crash leaves a whole file or none, and found by digest."""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json

from fairlead_cli.errors import CommandError
from fairlead_cli.exports.export_file import verify_file
from fairlead_schema.ids import SessionId
from fairlead_schema.session_values.stored_file import StoredFile
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.lines import (
    ExportedCommit,
    ExportEnd,
    ExportHeader,
    SessionSealed,
)
from fairlead_session.transfer.reader import file_lines, trusted_items
from fairlead_session.transfer.verification import ExportSummary

SUFFIX: Final = ".fairlead.jsonl"
DIGEST_LENGTH: Final = 16
# The last two lines of an export are far shorter.
TAIL_BYTES: Final = 4096

WriteExport = Callable[[BinaryIO], Awaitable[None]]
"""Writes an export of one session to an open file."""


class ColdFile(NamedTuple):
    """A verified file that holds one session."""

    path: Path
    stored: StoredFile
    children: tuple[SessionId, ...]
    """The sessions of its sub-agents, whether or not they were created."""


class ListedFile(NamedTuple):
    """What the first and the last lines of a file say. Nobody has verified the rest."""

    path: Path
    session_id: SessionId
    tenant: str
    events: int
    bytes: int
    exported_at: int
    digest: str


async def write_file(directory: Path, session_id: SessionId, write: WriteExport) -> ColdFile:
    """Write an export beside its place, verify it, make it durable, and then give it its name.

    Raises CommandError. A file that cannot be completed is removed.
    """
    # Processes of several containers have the same id, and may share the directory.
    part = directory / f".{session_id}.{token_hex(8)}.part"
    try:
        with _create(part) as file:
            await write(file)
            file.flush()
            os.fsync(file.fileno())
        found = _single_session(part, verify_file(part), session_id)
        path = directory / f"{session_id}.{found.stored.digest[:DIGEST_LENGTH]}{SUFFIX}"
        _rename(part, path)
    except OSError as error:
        raise CommandError(f"{directory} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink()
    return found._replace(path=path, stored=found.stored.model_copy(update={"name": path.name}))


def open_file(directory: Path, session_id: SessionId, stored: StoredFile) -> ColdFile:
    """The verified file that a marker names. Raises CommandError if it is missing or another one."""
    path = directory / stored.name
    if not path.is_file():
        raise CommandError(
            f"{session_id} is stored in {stored.name}, and {directory} has no such file"
        )
    found = _single_session(path, verify_file(path), session_id)
    if (found.stored.digest, found.stored.seq) != (stored.digest, stored.seq):
        raise CommandError(
            f"{path} is not the file that holds {session_id}: it has the digest"
            f" {found.stored.digest}, and the marker of the session {stored.digest}"
        )
    return found


def read_commits(directory: Path | None, at: Address, stored: StoredFile) -> Iterator[bytes] | None:
    """The commits of the verified file that a marker names; None without a file. Raises CommandError."""
    if directory is None or not (directory / stored.name).is_file():
        return None
    return _commits(open_file(directory, at.session_id, stored).path)


def _commits(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for item in trusted_items(file_lines(file)):
            if isinstance(item, ExportedCommit):
                yield item.payload


def list_files(directory: Path) -> Iterator[ListedFile]:
    """The files of stored sessions in a directory, by name. Raises CommandError."""
    for path in file_paths(directory):
        listed = _peek(path)
        if listed is not None:
            yield listed


def file_paths(directory: Path) -> list[Path]:
    """Every file with the name of an export, in order. Raises CommandError."""
    try:
        return sorted(path for path in directory.iterdir() if path.name.endswith(SUFFIX))
    except OSError as error:
        raise CommandError(f"{directory} cannot be read: {error.strerror}") from error


def _single_session(path: Path, summary: ExportSummary, session_id: SessionId) -> ColdFile:
    session = summary.sessions.get(session_id)
    if session is None or len(summary.sessions) != 1:
        raise CommandError(f"{path} does not hold {session_id} alone")
    stored = StoredFile(
        name=path.name.removeprefix("."),
        digest=summary.digest,
        bytes=path.stat().st_size,
        seq=session.seq,
    )
    return ColdFile(path, stored, tuple(session.children))


def _peek(path: Path) -> ListedFile | None:
    """What a file says at its beginning and its end; None if it is no export of one session."""
    try:
        with path.open("rb") as file:
            header = ExportHeader.model_validate(from_json(file.readline()))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            *_rest, sealed_line, end_line = file.read().splitlines()
        sealed = SessionSealed.model_validate(from_json(sealed_line))
        end = ExportEnd.model_validate(from_json(end_line))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    except (ValidationError, ValueError):
        return None
    return ListedFile(
        path, sealed.sealed, header.tenant, sealed.events, size, header.at, end.digest
    )


def _create(path: Path) -> BinaryIO:
    """Open a new file. Directories that are made for it are durable before it is."""
    missing = [one for one in (path.parent, *path.parent.parents) if not one.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    for directory in missing:
        _sync_directory(directory.parent)
    return path.open("xb")


def _rename(part: Path, path: Path) -> None:
    """Give a file its name, and make the name durable: after a power cut the file is there."""
    part.replace(path)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    number = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
