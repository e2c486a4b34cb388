"""Writes the keys and grants of NATS into a directory: new ones, changed ones, replaced and revoked."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fairlead_cli.errors import UsageError
from fairlead_cli.nats_access import callout_tenants, principals
from fairlead_cli.nats_access.callout_tenants import CalloutTenants
from fairlead_cli.nats_access.principals import PrincipalGrant
from fairlead_eventlog.grants.callout import CALLOUT, ISSUER
from fairlead_eventlog.grants.key_directory import KeyDirectory, WrittenKeys
from fairlead_eventlog.grants.services import SERVICE_IDENTITIES
from fairlead_schema.ids import TenantId
from fairlead_schema.tools.pool_rules import ONE_POOL, PoolRules, worker_identity


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """What the options of a command change."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rotated: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    keys_file: Path | None = None
    callout: bool | None = None
    """Whether an auth callout is wanted; None for what earlier commands said."""
    tenants: tuple[str, ...] = ()
    """The tenants whose clients the callout connects, beside those of earlier commands."""


def write_keys(directory: Path, changes: KeyChanges, pools: PoolRules = ONE_POOL) -> list[str]:
    """Write the keys and grants, also of the workers of each pool. The lines say what changed.

    Raises UsageError and LogError.
    """
    known = principals.load(directory)
    wanted, left_out = known, list[str]()
    if changes.keys_file is not None:
        wanted, left_out = principals.follow_keys_file(
            known, changes.keys_file, now=datetime.now(UTC)
        )
    wanted = principals.change(wanted, changes.added, changes.removed)
    known_callout = callout_tenants.load_tenants(directory)
    callout = _wanted_callout(known_callout, changes)
    keys = KeyDirectory(directory)
    workers = map(worker_identity, pools.others)
    existing = {*SERVICE_IDENTITIES, *workers, *wanted, *(() if callout is None else (CALLOUT,))}
    for text in changes.rotated:
        keys.rotate(_existing(text, "--rotate", existing))
    for text in changes.retired:
        keys.retire(_existing(text, "--retire", existing))
    written = keys.write(
        (grant.principal() for grant in wanted.values()),
        callout_tenants=None if callout is None else callout.tenants,
        pools=pools,
    )
    principals.save(directory, wanted)
    callout_tenants.save_tenants(directory, callout)
    gone = sorted(known.keys() - wanted.keys())
    if known_callout is not None and callout is None:
        gone += [CALLOUT, ISSUER]
    for name in gone:
        keys.remove(name)
    before = _tenants(known, known_callout)
    return [
        *left_out,
        *(f"key {keys.seed_file(name)}: deleted" for name in gone),
        *_say_new(_tenants(wanted, callout) - before),
        *_say(keys, written, has_callout=callout is not None or known_callout is not None),
    ]


def _wanted_callout(known: CalloutTenants | None, changes: KeyChanges) -> CalloutTenants | None:
    is_wanted = known is not None if changes.callout is None else changes.callout
    if not is_wanted:
        if changes.tenants:
            raise UsageError("--tenant names a tenant of the callout: add --callout")
        return None
    return (known or CalloutTenants()).add(changes.tenants)


def _existing(text: str, option: str, existing: set[str]) -> str:
    name = principals.key_name(text)
    if name not in existing:
        raise UsageError(f"{option} {text}: no such key, name a service or NAME:TENANT")
    return name


def _say(keys: KeyDirectory, written: WrittenKeys, *, has_callout: bool) -> list[str]:
    # The callout lists every static key, and nats-server reloads no change of a callout.
    act = "reload; restart it if a key is new or gone" if has_callout else "reload"
    exposed = "others could read it, now they cannot; replace the key if somebody did"
    return [
        *(f"key {keys.seed_file(name)}: created" for name in written.created),
        *(f"key {keys.seed_file(name)}: {exposed}" for name in written.exposed),
        f"{keys.config}: written; include it in the configuration of nats-server and {act}",
    ]


def _say_new(tenants: set[TenantId]) -> list[str]:
    """nats-server 2.15.1 links the requests of a new account to the services with the second reload."""
    return [
        f"tenant {tenant}: reload a running nats-server twice, or nobody serves its requests"
        for tenant in sorted(tenants)
    ]


def _tenants(
    principals: Mapping[str, PrincipalGrant], callout: CalloutTenants | None
) -> set[TenantId]:
    """The tenants that have an account."""
    of_callout = () if callout is None else callout.tenants
    return {*of_callout, *(grant.tenant for grant in principals.values())}
