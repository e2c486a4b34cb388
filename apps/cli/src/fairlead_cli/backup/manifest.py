"""The manifest of a backup: what each file holds, with the digests by which damage is told.

The manifest is written last, so a directory without one is no backup.
"""

import json
from hashlib import sha256
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlead_eventlog.backup.copy_order import LOGS, RESTORE_ORDER
from fairlead_schema.record import LEVEL_NEWEST

MANIFEST: Final = "backup.json"
FORMAT: Final = "fairlead-backup"
VERSION: Final = 1


class BackupDamaged(ValueError):
    """A directory that is no backup, or not the one that was written. Its message says what to do."""


class CopiedStream(BaseModel):
    """One file, and the stream that it holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    file: str
    bytes: int = Field(ge=0)
    sha256: str
    config: dict[str, Any]
    state: dict[str, Any]

    @property
    def last_position(self) -> int:
        """The position of its last message, deleted ones included."""
        return int(self.state["last_seq"])


class Manifest(BaseModel):
    """Everything that is known of a backup."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fairlead: Literal["fairlead-backup"]
    version: int
    id: str
    release: str
    began: str
    ended: str
    level: int
    incarnation: str | None
    streams: tuple[CopiedStream, ...]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(stream.bytes for stream in self.streams)

    @property
    def commits(self) -> int:
        """How many commits the copied log has."""
        return sum(int(stream.state["messages"]) for stream in self.streams if stream.name in LOGS)


class _Sealed(BaseModel):
    backup: dict[str, Any]
    digest: str


def encode_manifest(manifest: Manifest) -> bytes:
    """The file: the manifest and a digest of it."""
    backup = manifest.model_dump(mode="json")
    sealed = {"backup": backup, "digest": _digest(backup)}
    return json.dumps(sealed, indent=1).encode() + b"\n"


def decode_manifest(data: bytes) -> Manifest:
    """The manifest in a file. Raises BackupDamaged."""
    sealed = _parse(data)
    said = sealed.backup.get("fairlead"), sealed.backup.get("version")
    if said[0] != FORMAT:
        raise BackupDamaged(f"{MANIFEST} is not of a backup: name a directory of `fairlead backup`")
    if said[1] != VERSION:
        raise BackupDamaged(f"the backup has version {said[1]}: install the release that made it")
    if sealed.digest != _digest(sealed.backup):
        raise BackupDamaged(f"{MANIFEST} was changed: use another copy of the backup")
    try:
        manifest = Manifest.model_validate(sealed.backup)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise BackupDamaged(f"{MANIFEST} cannot be read at {place}: use another copy") from error
    _check_streams(manifest)
    return manifest


def _parse(data: bytes) -> _Sealed:
    try:
        return _Sealed.model_validate_json(data)
    except ValidationError as error:
        raise BackupDamaged(
            f"{MANIFEST} is cut off or not of a backup: use another copy"
        ) from error


def _check_streams(manifest: Manifest) -> None:
    """Refuse a backup without a part, or with one that this release does not know."""
    names = {stream.name for stream in manifest.streams}
    if missing := sorted(set(LOGS) - names):
        raise BackupDamaged(f"the backup lacks {', '.join(missing)}: use another backup")
    if unknown := sorted(names - set(RESTORE_ORDER)):
        raise BackupDamaged(
            f"the backup has {', '.join(unknown)}, which this release does not know:"
            f" install release {manifest.release}"
        )
    if manifest.level > LEVEL_NEWEST:
        raise BackupDamaged(
            f"the log of the backup has level {manifest.level} and this release knows"
            f" {LEVEL_NEWEST}: install release {manifest.release}"
        )
    if any("/" in stream.file or stream.file.startswith(".") for stream in manifest.streams):
        raise BackupDamaged("a file of the backup is outside of its directory: use another copy")


def _digest(backup: dict[str, Any]) -> str:
    canonical = json.dumps(backup, sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode()).hexdigest()
