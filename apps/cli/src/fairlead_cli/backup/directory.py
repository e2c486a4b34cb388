"""The files of a backup on this machine: written and synced, and read only after they were verified."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

from fairlead_cli.backup.manifest import (
    MANIFEST,
    BackupDamaged,
    CopiedStream,
    Manifest,
    decode_manifest,
    encode_manifest,
)
from fairlead_cli.embedded.private_files import DIRECTORY_MODE, open_private
from fairlead_cli.errors import CommandError
from fairlead_eventlog.backup.copy_order import CHUNK_BYTES

MEGABYTE: Final = 1024 * 1024
SPARE_BYTES: Final = 64 * MEGABYTE


def prepare_directory(root: Path) -> None:
    """Make the directory of a new backup. Files that a cut-off backup left are replaced. Raises CommandError."""
    if (root / MANIFEST).exists():
        raise CommandError(f"{root} holds a backup: choose another directory for this one")
    try:
        root.mkdir(parents=True, exist_ok=True, mode=DIRECTORY_MODE)
        strangers = [path.name for path in root.iterdir() if path.suffix != ".stream"]
    except OSError as error:
        raise CommandError(f"{root} cannot be written: {error.strerror}") from error
    if strangers:
        raise CommandError(f"{root} is not empty ({strangers[0]}): choose an empty directory")


def check_space(root: Path, needed: int) -> None:
    """Refuse a disk that cannot take so many bytes and some more. Raises CommandError."""
    free = shutil.disk_usage(root).free
    if free < needed + SPARE_BYTES:
        raise CommandError(
            f"{root} has {free // MEGABYTE} MB free and the backup needs up to"
            f" {(needed + SPARE_BYTES) // MEGABYTE} MB: free some space, or choose another disk"
        )


def stream_file(name: str) -> str:
    """The file of a stream."""
    return f"{name}.stream"


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file for its owner alone, on disk when the block ends. Raises CommandError."""
    try:
        with open(path, "wb", opener=open_private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror}: the backup is not complete"
        ) from error


def write_manifest(root: Path, manifest: Manifest) -> None:
    """Make the files of a directory a backup."""
    part = root / f"{MANIFEST}.part.stream"
    with writing(part) as file:
        file.write(encode_manifest(manifest))
    part.replace(root / MANIFEST)
    descriptor = os.open(root, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def verify_directory(root: Path, progress: Callable[[str], None] = lambda _line: None) -> Manifest:
    """The manifest of a backup whose files are all as they were written. Raises CommandError."""
    try:
        manifest = decode_manifest((root / MANIFEST).read_bytes())
        for stream in manifest.streams:
            _verify_file(root, stream)
            progress(f"{stream.file}: {stream.bytes} bytes, verified")
    except FileNotFoundError as error:
        name = Path(str(error.filename)).name
        hint = (
            "it is no backup, or one that was cut off" if name == MANIFEST else "use another copy"
        )
        raise CommandError(f"{root} has no {name}: {hint}") from error
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be read: {error.strerror}") from error
    except BackupDamaged as error:
        raise CommandError(f"{root}: {error}") from error
    return manifest


def read_chunks(root: Path, stream: CopiedStream) -> Iterator[bytes]:
    """The bytes of a file, in pieces."""
    with (root / stream.file).open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _verify_file(root: Path, stream: CopiedStream) -> None:
    digest, size = sha256(), 0
    for chunk in read_chunks(root, stream):
        digest.update(chunk)
        size += len(chunk)
    if size != stream.bytes:
        raise BackupDamaged(
            f"{stream.file} has {size} of {stream.bytes} bytes: use another copy of the backup"
        )
    if digest.hexdigest() != stream.sha256:
        raise BackupDamaged(f"{stream.file} was changed: use another copy of the backup")
