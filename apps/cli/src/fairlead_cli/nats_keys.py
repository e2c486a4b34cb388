"""Writes the keys and grants of NATS into a directory: new ones, changed ones, replaced and revoked."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fairlead_cli import nats_principals
from fairlead_cli.errors import UsageError
from fairlead_cli.nats_principals import PrincipalGrant
from fairlead_eventlog.grants.key_directory import KeyDirectory, WrittenKeys
from fairlead_eventlog.grants.services import SERVICE_IDENTITIES


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """What the options of a command change."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rotated: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    keys_file: Path | None = None


def write_keys(directory: Path, changes: KeyChanges) -> list[str]:
    """Write the keys and grants. The lines say what changed. Raises UsageError and LogError."""
    known = nats_principals.load(directory)
    wanted, left_out = known, list[str]()
    if changes.keys_file is not None:
        wanted, left_out = nats_principals.follow_keys_file(
            known, changes.keys_file, now=datetime.now(UTC)
        )
    wanted = nats_principals.change(wanted, changes.added, changes.removed)
    keys = KeyDirectory(directory)
    for text in changes.rotated:
        keys.rotate(_existing(text, "--rotate", wanted))
    for text in changes.retired:
        keys.retire(_existing(text, "--retire", wanted))
    written = keys.write(grant.principal() for grant in wanted.values())
    nats_principals.save(directory, wanted)
    gone = sorted(known.keys() - wanted.keys())
    for name in gone:
        keys.remove(name)
    return [
        *left_out,
        *(f"key {keys.seed_file(name)}: deleted" for name in gone),
        *_say(keys, written),
    ]


def _existing(text: str, option: str, wanted: dict[str, PrincipalGrant]) -> str:
    name = nats_principals.key_name(text)
    if name not in wanted and name not in SERVICE_IDENTITIES:
        raise UsageError(f"{option} {text}: no such key, name a service or NAME:TENANT")
    return name


def _say(keys: KeyDirectory, written: WrittenKeys) -> list[str]:
    exposed = "others could read it, now they cannot; replace the key if somebody did"
    return [
        *(f"key {keys.seed_file(name)}: created" for name in written.created),
        *(f"key {keys.seed_file(name)}: {exposed}" for name in written.exposed),
        f"{keys.config}: written; include it in the configuration of nats-server and reload",
    ]
