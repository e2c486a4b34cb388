"""`fairlead provision --nats-auth`: keys and grants in files, kept, changed and revoked."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from fairlead_cli import nats_principals
from fairlead_cli.commands.stack.provision import write_keys
from fairlead_cli.embedded.nats_auth import OPEN_ACCOUNT, prepare_keys
from fairlead_cli.embedded.ports import free_port
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.errors import UsageError
from fairlead_eventlog.grants.server_config import PLATFORM
from fairlead_eventlog.provision import missing_streams, provision
from fairlead_testing.nats import Server

BILLING = "service:billing:acme:service,viewer"


def test_keys_are_made_once_and_grants_are_written_anew(tmp_path: Path) -> None:
    first = write_keys(tmp_path, [BILLING], [])
    seed = (tmp_path / "acme.service-billing.nk").read_bytes()
    config = (tmp_path / "auth.conf").read_text()

    again = write_keys(tmp_path, ["key:1:acme:viewer"], [])

    assert sum(line.endswith("created") for line in first) == 8
    assert [line for line in again if line.endswith("created")] == [
        f"key {tmp_path / 'acme.key-1.nk'}: created"
    ]
    assert (tmp_path / "acme.service-billing.nk").read_bytes() == seed
    assert "fairlead.as.acme.service:billing.tool.register" in config
    assert "fairlead.as.acme.key:1.session.get" in (tmp_path / "auth.conf").read_text()


def test_a_revoked_principal_has_neither_key_nor_grants(tmp_path: Path) -> None:
    write_keys(tmp_path, [BILLING], [])

    write_keys(tmp_path, [], ["service:billing:acme"])

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
        nats_principals.parse(text)


def test_a_principal_that_does_not_exist_cannot_be_revoked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such principal"):
        write_keys(tmp_path, [], ["service:billing:acme"])


def test_a_broken_list_of_principals_is_named(tmp_path: Path) -> None:
    (tmp_path / "principals.json").write_text("{}")

    with pytest.raises(UsageError, match=r"principals\.json cannot be read"):
        write_keys(tmp_path, [], [])


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
