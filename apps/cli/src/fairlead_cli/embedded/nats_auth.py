"""The keys of the embedded nats-server: one for each service, one for the operator, one for users."""

from typing import Final

from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_eventlog.grants.crossings import PLATFORM
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_schema.identity.principal import LOCAL
from fairlead_schema.tools.pool_rules import ONE_POOL, PoolRules

OPEN_ACCOUNT: Final = "$G"
"""The account of a server without accounts. Stacks before the keys kept their streams in it."""


def key_directory(state: StateDirectory) -> KeyDirectory:
    """Where the keys of a stack are."""
    return KeyDirectory(state.nats / "keys")


def nats_environment(state: StateDirectory, service: str) -> dict[str, str]:
    """The variables by which a service connects: its own key, and nothing of other servers."""
    elsewhere = ("CREDS_FILE", "TLS_CA", "TLS_CERT", "TLS_KEY", "INBOX_PREFIX")
    return {
        "FAIRLEAD_NATS_NKEY_FILE": str(key_directory(state).seed_file(service)),
        **{f"FAIRLEAD_NATS_{name}": "" for name in elsewhere},
    }


def prepare_keys(state: StateDirectory, pools: PoolRules = ONE_POOL) -> KeyDirectory:
    """Make missing keys, write the grants anew, and keep the streams of an earlier version."""
    keys = key_directory(state)
    keys.write((LOCAL,), pools=pools)
    before = state.nats / "jetstream" / "jetstream" / OPEN_ACCOUNT
    now = before.with_name(PLATFORM)
    if before.is_dir() and not now.exists():
        before.rename(now)
    return keys
