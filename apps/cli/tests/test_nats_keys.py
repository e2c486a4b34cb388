"""`fairlead provision --nats-auth`: keys and grants in files, kept, changed and revoked."""

import asyncio
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nkeys
import pytest

from fairlead_cli.embedded.nats_auth import OPEN_ACCOUNT, prepare_keys
from fairlead_cli.embedded.ports import free_port
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.errors import UsageError
from fairlead_cli.nats_access import principals
from fairlead_cli.nats_access.keys import KeyChanges, write_keys
from fairlead_eventlog.errors import CredentialsUnusable
from fairlead_eventlog.grants.crossings import PLATFORM
from fairlead_eventlog.grants.services import SERVICE_IDENTITIES
from fairlead_eventlog.provision import missing_streams, provision
from fairlead_service.identity.key_file import add_key, revoke_key
from fairlead_service.identity.keys import mint_key
from fairlead_testing.nats import Server

BILLING = "service:billing:acme:service,viewer"


def test_keys_are_made_once_and_grants_are_written_anew(tmp_path: Path) -> None:
    first = write_keys(tmp_path, KeyChanges(added=(BILLING,)))
    seed = (tmp_path / "acme.service-billing.nk").read_bytes()
    config = (tmp_path / "auth.conf").read_text()

    again = write_keys(tmp_path, KeyChanges(added=("key:1:acme:viewer",)))

    assert sum(line.endswith("created") for line in first) == len(SERVICE_IDENTITIES) + 1
    assert [line for line in again if line.endswith("created")] == [
        f"key {tmp_path / 'acme.key-1.nk'}: created"
    ]
    assert (tmp_path / "acme.service-billing.nk").read_bytes() == seed
    assert "fairlead.as.acme.service:billing.tool.register" in config
    assert "fairlead.as.acme.key:1.session.get" in (tmp_path / "auth.conf").read_text()


def test_a_revoked_principal_has_neither_key_nor_grants(tmp_path: Path) -> None:
    write_keys(tmp_path, KeyChanges(added=(BILLING,)))

    write_keys(tmp_path, KeyChanges(removed=("service:billing:acme",)))

    assert not (tmp_path / "acme.service-billing.nk").exists()
    assert "billing" not in (tmp_path / "auth.conf").read_text()
    assert json.loads((tmp_path / "principals.json").read_text()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("billing", "NAME:TENANT:ROLES"),
        ("service:billing:acme:wizard", "neither a role nor a scope"),
        ("service:billing:no tenant:viewer", "NAME:TENANT:ROLES"),
        ("service:bil ling:acme:viewer", "NAME:TENANT:ROLES"),
        ("user:https://id/x:acme:viewer", "users have no NATS key"),
        ("service:a.b:acme:viewer", "NAME:TENANT:ROLES"),
    ],
)
def test_a_principal_that_cannot_be_granted_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        principals.parse(text)


def test_a_principal_that_does_not_exist_cannot_be_revoked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such principal"):
        write_keys(tmp_path, KeyChanges(removed=("service:billing:acme",)))


def test_a_broken_list_of_principals_is_named(tmp_path: Path) -> None:
    (tmp_path / "principals.json").write_text("{}")

    with pytest.raises(UsageError, match=r"principals\.json cannot be read"):
        write_keys(tmp_path, KeyChanges())


@pytest.mark.parametrize(
    "records",
    [
        '[{"name": "key:1", "tenant": "acme", "roles": ["wizard"]}]',
        '[{"name": "user:https://id/>", "tenant": "acme", "roles": ["viewer"]}]',
        '[{"name": "key:*", "tenant": "acme", "roles": ["viewer"]}]',
        '[{"name": "key:1", "tenant": "a.b", "roles": ["viewer"]}]',
        '[{"name": "key:1"',
        "\0",
    ],
)
def test_a_list_of_principals_with_a_wrong_entry_changes_nothing(
    tmp_path: Path, records: str
) -> None:
    """B9: a name with a wildcard would be granted the subjects of others."""
    write_keys(tmp_path, KeyChanges(added=(BILLING,)))
    config = (tmp_path / "auth.conf").read_text()
    (tmp_path / "principals.json").write_text(records)

    with pytest.raises(UsageError, match=r"principals\.json cannot be read.*correct the file"):
        write_keys(tmp_path, KeyChanges())

    assert (tmp_path / "auth.conf").read_text() == config


def test_a_renamed_principal_gets_a_new_key_and_the_old_one_goes(tmp_path: Path) -> None:
    write_keys(tmp_path, KeyChanges(added=(BILLING,)))

    changes = KeyChanges(added=("service:bills:acme:service",), removed=("service:billing:acme",))
    lines = write_keys(tmp_path, changes)

    seeds = {path.name for path in tmp_path.glob("acme.*")}
    assert seeds == {"acme.service-bills.nk"}
    assert f"key {tmp_path / 'acme.service-billing.nk'}: deleted" in lines


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")

    with pytest.raises(CredentialsUnusable, match="a directory that you may write"):
        write_keys(place / "keys", KeyChanges())


def test_a_seed_that_others_could_read_is_made_private_and_named(tmp_path: Path) -> None:
    """B8: the operator decides whether the key has to be replaced."""
    write_keys(tmp_path, KeyChanges())
    seed = tmp_path / "gateway.nk"
    seed.chmod(0o644)

    lines = write_keys(tmp_path, KeyChanges())

    assert [line for line in lines if "others could read it" in line] == [
        f"key {seed}: others could read it, now they cannot; replace the key if somebody did"
    ]
    assert seed.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "principals.json").stat().st_mode & 0o777 == 0o600


def test_a_seed_of_another_kind_or_of_two_identities_is_refused(tmp_path: Path) -> None:
    """B8: nats-server would refuse the whole configuration at its next reload."""
    write_keys(tmp_path, KeyChanges())
    gateway, ingest = tmp_path / "gateway.nk", tmp_path / "ingest.nk"
    account = nkeys.encode_seed(bytes(32), nkeys.PREFIX_BYTE_ACCOUNT)

    gateway.write_bytes(ingest.read_bytes())
    with pytest.raises(CredentialsUnusable, match="also the key of ingest"):
        write_keys(tmp_path, KeyChanges())
    gateway.write_bytes(account)
    with pytest.raises(CredentialsUnusable, match="not the nkey seed of a user"):
        write_keys(tmp_path, KeyChanges())


def test_the_keys_of_http_get_keys_of_nats_unless_nats_cannot_enforce_their_limits(
    tmp_path: Path,
) -> None:
    """B9: one list of principals for both doors; a restricted key is left out with its reason."""
    file = tmp_path / "keys.json"
    entries = {
        "plain": mint_key(["viewer"], tenant="acme")[1],
        "rooted": mint_key(["viewer"], tenant="acme", roots=("/srv",))[1],
        "short": mint_key(["viewer"], expires=datetime.now(UTC) + timedelta(hours=1))[1],
        "over": mint_key(["viewer"], expires=datetime.now(UTC) - timedelta(hours=1))[1],
    }
    for entry in entries.values():
        add_key(file, entry)
    place = tmp_path / "auth"

    lines = write_keys(place, KeyChanges(added=(BILLING,), keys_file=file))

    key = f"acme.key-{entries['plain'].id}.nk"
    assert {path.name for path in place.glob("*.*-*.nk")} == {"acme.service-billing.nk", key}
    assert f"key:{entries['rooted'].id}: left out, NATS cannot enforce its roots" in lines
    assert f"key:{entries['short'].id}: left out, NATS cannot enforce its expiry" in lines
    assert not any(entries["over"].id in line for line in lines)

    revoke_key(file, entries["plain"].id, at=datetime.now(UTC))
    assert f"key {place / key}: deleted" in write_keys(place, KeyChanges(keys_file=file))
    assert (place / "acme.service-billing.nk").exists()


@pytest.mark.parametrize("text", ["{", '{"keys": [{"id": "x"}]}', None])
def test_a_keys_file_that_cannot_be_read_changes_nothing(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "keys.json"
    if text is not None:
        file.write_text(text)

    with pytest.raises(UsageError, match=r"--keys"):
        write_keys(tmp_path / "auth", KeyChanges(keys_file=file))

    assert not (tmp_path / "auth").exists()


@pytest.mark.integration
async def test_a_state_from_before_the_keys_keeps_its_streams(tmp_path: Path) -> None:
    """B9: an upgrade moves the store of the open account into the platform's account."""
    state = StateDirectory(tmp_path)
    state.nats.mkdir()
    before = Server(state.nats, free_port())
    before.start()
    await provision(before.address)
    await asyncio.to_thread(before.kill)
    shutil.move(state.nats / "js", state.nats / "jetstream")

    keys = prepare_keys(state)

    store = state.nats / "jetstream" / "jetstream"
    assert {path.name for path in store.iterdir()} == {PLATFORM}
    assert not (store / OPEN_ACCOUNT).exists()
    (state.nats / "jetstream").rename(state.nats / "js")
    after = Server(state.nats, free_port(), more='include "keys/auth.conf"')
    after.start()
    try:
        lost = await missing_streams(keys.service_address(after.url, "operator"))
    finally:
        await asyncio.to_thread(after.kill)
    assert not any(name.startswith("LOG") for name in lost)
