"""Changes a keys file: adds and revokes keys, one writer at a time, never half written."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from fairlead_service.identity.keys import KeyEntry, KeysDocument, parse_keys
from fairlead_service.identity.watched_file import FileUnusable


def load_keys(path: Path) -> KeysDocument:
    """The keys of a file; none if there is no file. Raises FileUnusable."""
    try:
        return parse_keys(path.read_text())
    except FileNotFoundError:
        return KeysDocument()
    except OSError as error:
        raise FileUnusable(path, error.strerror or "cannot be read") from error
    except ValueError as error:
        raise FileUnusable(path, str(error)) from error


def add_key(path: Path, entry: KeyEntry) -> None:
    """Add one key. Raises FileUnusable."""
    with _lock(path):
        document = load_keys(path)
        _replace(path, KeysDocument(keys=(*document.keys, entry)))


def revoke_key(path: Path, key_id: str, *, at: datetime) -> KeyEntry | None:
    """Mark a key as revoked; None if the file has no such key. A repeat keeps the first time."""
    with _lock(path):
        document = load_keys(path)
        entry = next((entry for entry in document.keys if entry.id == key_id), None)
        if entry is None or entry.revoked is not None:
            return entry
        revoked = entry.model_copy(update={"revoked": at})
        keys = tuple(revoked if item.id == key_id else item for item in document.keys)
        _replace(path, KeysDocument(keys=keys))
        return revoked


def write_secret(path: Path, text: str) -> None:
    """Replace a file with text that only its owner reads. A reader sees the old or the new text.

    A file that others could read before stays readable: its owner decided so.
    """
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _replace(path: Path, document: KeysDocument) -> None:
    fields = document.model_dump(mode="json", exclude_none=True)
    write_secret(path, json.dumps(fields, indent=2) + "\n")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock beside the file, because the file itself is replaced."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f".{path.name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise FileUnusable(path, error.strerror or "cannot be written") from error
