"""Commits in a file, a line for each: what `fairlead verify --export` writes."""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from pydantic_core import from_json, to_json

from fairlead_cli.errors import CommandError
from fairlead_schema.subjects import Address

# The field of a line that holds the bytes of an unreadable commit, in base64.
RAW: Final = "raw"
_COMMIT: Final = b',"commit":'


class EncodedCommit(NamedTuple):
    """One commit of one session, still encoded."""

    at: Address
    payload: bytes


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
