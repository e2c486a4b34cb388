"""Keys of NATS that are replaced and revoked while clients are connected to a real server."""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from fairlead_cli.nats_access.keys import KeyChanges, write_keys
from fairlead_eventlog.errors import CredentialsUnusable, LogUnavailable
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.jetstream.client import open_client
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.identity.principal import Principal
from fairlead_schema.identity.scopes import scopes_of
from fairlead_testing.nats import Server, run_guarded_server
from fairlead_testing.nats_probe import probe

pytestmark = pytest.mark.integration

TIMEOUT_S: Final = 30.0
BILLING: Final = Principal("service:billing", "acme", scopes_of(["service"]))
RIVAL: Final = Principal("key:1", "rival", scopes_of(["viewer"]))


@pytest.fixture
def keys(tmp_path: Path) -> KeyDirectory:
    directory = KeyDirectory(tmp_path / "keys")
    principals = ("service:billing:acme:service", "key:1:rival:viewer")
    write_keys(directory.root, KeyChanges(added=principals))
    return directory


@pytest.fixture
def guarded_server(keys: KeyDirectory) -> Iterator[Server]:
    """A server under the written configuration."""
    with run_guarded_server(keys) as running:
        yield running


async def test_a_key_is_replaced_while_its_service_stays_connected(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B8: both keys count until the old one is retired; then only the new one does."""
    new = keys.service_address(guarded_server.url, "operator")
    old = keep_seed(keys, "operator", new)
    reconnected = asyncio.Event()
    async with open_link(old, name="test") as running:
        running.on_reconnect(reconnected.set)
        write_keys(keys.root, KeyChanges(rotated=("operator",)))
        guarded_server.reload()
        await until(new, connected=True)

        assert await connects(old)
        assert (await running.api("STREAM.NAMES"))["total"] == 0
        assert not reconnected.is_set()
    with pytest.raises(CredentialsUnusable, match="retire that key first"):
        write_keys(keys.root, KeyChanges(rotated=("operator",)))

    write_keys(keys.root, KeyChanges(retired=("operator",)))
    guarded_server.reload()
    await until(old, connected=False)
    assert await connects(new)


async def test_a_revoked_principal_loses_its_connection_at_the_reload(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: the account of a tenant goes with its last principal, and other tenants stay."""
    address = keys.principal_address(guarded_server.url, BILLING)
    revoked = keep_seed(keys, "acme.service:billing", address)
    async with (
        probe(revoked) as attacker,
        probe(keys.principal_address(guarded_server.url, RIVAL)) as other,
    ):
        write_keys(keys.root, KeyChanges(removed=("service:billing:acme",)))
        guarded_server.reload()
        async with asyncio.timeout(TIMEOUT_S):
            while not attacker.client.is_closed:
                await asyncio.sleep(0.02)
        await other.client.flush()
        assert other.client.is_connected
    assert not await connects(revoked)


async def test_the_requests_of_a_new_tenant_are_served_after_two_reloads(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: nats-server links the new account to the services with the second reload, and the command says so."""
    newcomer = Principal("key:2", "newcomer", scopes_of(["viewer"]))
    async with probe(keys.service_address(guarded_server.url, "ingest")) as ingest:

        async def answer(message: Msg) -> None:
            await message.respond(b"served")

        await ingest.client.subscribe("fairlead.as.*.*.session.get", cb=answer)
        said = write_keys(keys.root, KeyChanges(added=("key:2:newcomer:viewer",)))
        assert any("tenant newcomer: reload a running nats-server twice" in line for line in said)
        address = keys.principal_address(guarded_server.url, newcomer)
        guarded_server.reload()
        await until(address, connected=True)
        guarded_server.reload()
        async with asyncio.timeout(TIMEOUT_S), probe(address) as client:
            while not await is_served(client.client, "fairlead.as.newcomer.key:2.session.get"):
                await asyncio.sleep(0.05)


async def is_served(client: Client, subject: str) -> bool:
    try:
        await client.request(subject, b"{}", timeout=1)
    except (NoRespondersError, NatsTimeout):
        return False
    return True


def keep_seed(keys: KeyDirectory, name: str, address: NatsAddress) -> NatsAddress:
    """The address of somebody who keeps the seed of now."""
    seed = keys.root.parent / "kept.nk"
    shutil.copy(keys.seed_file(name), seed)
    return replace(address, nkey_file=str(seed))


async def until(address: NatsAddress, *, connected: bool) -> None:
    """Return when the server has read its configuration again."""
    async with asyncio.timeout(TIMEOUT_S):
        while await connects(address) is not connected:
            await asyncio.sleep(0.05)


async def connects(address: NatsAddress) -> bool:
    try:
        await (await open_client(address, name="test")).close()
    except LogUnavailable:
        return False
    return True
