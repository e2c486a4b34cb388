"""`fairlead nats-callout`: clients connect to a real server with keys of HTTP, and only as themselves."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import nats
import nats.errors
import pytest
from nats.aio.msg import Msg

from fairlead_cli.commands.stack.nats_callout import build_callout
from fairlead_cli.embedded.ports import free_port
from fairlead_cli.errors import UsageError
from fairlead_cli.nats_access.keys import KeyChanges, write_keys
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.grants.callout import BadCalloutRequest, parse_request
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.grants.tenants import principal_inbox
from fairlead_eventlog.jetstream.auth_callout import Decide, serve_callout
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.provision import missing_streams
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.identity.principal import Principal
from fairlead_service.config.configuration import Config, load
from fairlead_service.identity.key_file import add_key, revoke_key
from fairlead_service.identity.keys import KeyEntry, mint_key
from fairlead_testing.nats import Server
from fairlead_testing.nats_probe import Probe, probe

pytestmark = pytest.mark.integration

TIMEOUT_S: Final = 20.0
BILLING: Final = "service:billing:acme:service"


@dataclass
class Place:
    """A server with a callout in its configuration, and a keys file of HTTP."""

    server: Server
    keys: KeyDirectory
    keys_file: Path

    def mint(
        self,
        *roles: str,
        tenant: str = "acme",
        **limits: Any,  # noqa: ANN401 - the fields of a key
    ) -> tuple[str, KeyEntry]:
        key, entry = mint_key(roles or ("admin",), tenant=tenant, **limits)
        add_key(self.keys_file, entry)
        return key, entry

    @property
    def config(self) -> Config:
        return load(None, {"FAIRLEAD_AUTH_KEYS_FILE": str(self.keys_file)})

    @property
    def address(self) -> NatsAddress:
        return NatsAddress(self.server.url, nkey_file=str(self.keys.seed_file("callout")))

    @asynccontextmanager
    async def callout(self, decide: Decide | None = None) -> AsyncIterator[None]:
        decide = decide or build_callout(self.config, self.keys).decide
        async with serve_callout(self.address, decide):
            yield


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    keys = KeyDirectory(tmp_path / "keys")
    changes = KeyChanges(added=(BILLING,), callout=True, tenants=("acme", "rival"))
    write_keys(keys.root, changes)
    server = Server(tmp_path, free_port(), more='include "keys/auth.conf"')
    server.start()
    try:
        yield Place(server, keys, tmp_path / "keys.json")
    finally:
        server.kill()


@asynccontextmanager
async def client(place: Place, entry: KeyEntry, **credentials: str) -> AsyncIterator[Probe]:
    address = replace(place.server.address, inbox_prefix=principal_inbox(entry.principal()))
    async with probe(address, **credentials) as connected:
        yield connected


async def is_refused(place: Place, entry: KeyEntry, **credentials: str) -> bool:
    try:
        async with client(place, entry, **credentials):
            return False
    except nats.errors.Error as error:
        return "authorization violation" in str(error).lower()


@asynccontextmanager
async def verbs(place: Place) -> AsyncIterator[None]:
    """Somebody who answers every verb, as ingest does, with its own static key."""

    async def answer(msg: Msg) -> None:
        await msg.respond(msg.subject.encode())

    async with open_link(
        place.keys.service_address(place.server.url, "operator"), name="t"
    ) as link:
        await link.client.subscribe("fairlead.as.>", cb=answer)
        await link.client.flush()
        yield


@pytest.mark.parametrize("shown", ["token", "password"])
async def test_a_client_with_a_key_of_http_calls_its_own_verbs_alone(
    place: Place, shown: str
) -> None:
    """B9: the subject names the holder of the key. Subjects of others are refused by the server."""
    key, entry = place.mint("viewer")
    _, other = place.mint("admin")
    own = f"fairlead.as.acme.key:{entry.id}"
    credentials = {"token": key} if shown == "token" else {"user": "opencode", "password": key}

    async with place.callout(), verbs(place), client(place, entry, **credentials) as connected:
        answer = await connected.client.request(f"{own}.session.get", b"{}", timeout=TIMEOUT_S)
        foreign = {
            f"{own}.session.create",
            f"fairlead.as.acme.key:{other.id}.session.get",
            f"fairlead.as.rival.key:{entry.id}.session.get",
            "fairlead.prompt.rival.ses_x",
            "fairlead.log.acme.1.ses_x",
            "fairlead.api.acme.session.get",
            "$JS.API.STREAM.NAMES",
            "$SYS.REQ.USER.AUTH",
        }
        assert answer.data == f"{own}.session.get".encode()
        assert await connected.publish({name: name for name in foreign}) == set()
        heard = {"fairlead.event.rival.>", "$SYS.REQ.USER.AUTH", "_INBOX.>", ">"}
        assert await connected.subscribe({name: name for name in heard}) == set()
        assert await connected.subscribe({"own": "fairlead.event.acme.>"}) == {"own"}


async def test_clients_that_prove_nothing_are_refused_with_an_audit_line(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """B8: unknown, expired and revoked keys, no key, restricted keys, undeclared tenants."""
    caplog.set_level(logging.INFO, "fairlead.audit")
    now = datetime.now(UTC)
    key, entry = place.mint()
    expired, _ = place.mint(expires=now - timedelta(seconds=1))
    revoked, gone = place.mint()
    revoke_key(place.keys_file, gone.id, at=now)
    restricted, _ = place.mint(roots=("/srv",), cost=1.0)
    stranger, _ = place.mint(tenant="stranger")
    unknown, _ = mint_key(("admin",), tenant="acme")

    async with place.callout():
        tokens = (key[:-1], unknown, expired, revoked, restricted, stranger, "a.b.c")
        for token in tokens:
            assert await is_refused(place, entry, token=token)
        assert await is_refused(place, entry)
        assert not await is_refused(place, entry, token=key)

    lines = [record for record in caplog.records if record.name == "fairlead.audit"]
    reasons = [vars(line)["reason"] for line in lines if vars(line)["outcome"] == "refused"]
    said = ("not known", "not known", "expired", "revoked", "roots, cost", "stranger", "not a key")
    for word, reason in zip((*said, "neither"), reasons, strict=True):
        assert word in reason
    assert not any(token in caplog.text for token in (key, expired, revoked, restricted))


async def test_static_keys_need_no_callout(place: Place) -> None:
    """B9: services and static principals connect while no callout runs; a key of HTTP does not."""
    key, entry = place.mint()
    billing = Principal("service:billing", "acme", frozenset())

    assert await missing_streams(place.keys.service_address(place.server.url, "provision"))
    async with probe(place.keys.principal_address(place.server.url, billing)) as connected:
        own = "fairlead.as.acme.service:billing.tool.register"
        assert await connected.publish({"own": own}) == {"own"}
    with pytest.raises((nats.errors.Error, LogUnavailable, TimeoutError)):
        async with asyncio.timeout(TIMEOUT_S), client(place, entry, token=key):
            pass


async def test_a_connection_ends_when_its_key_expires(place: Place) -> None:
    """B8: the server closes the connection. Nobody has to ask the callout again."""
    key, entry = place.mint(expires=datetime.now(UTC) + timedelta(seconds=3))

    async with place.callout(), client(place, entry, token=key) as connected:
        async with asyncio.timeout(TIMEOUT_S):
            while not connected.client.is_closed:
                await asyncio.sleep(0.02)


async def test_the_command_serves_until_it_is_asked_to_end(place: Place) -> None:
    """B8: the process takes its keys from the configuration and its seeds from the directory."""
    key, entry = place.mint()
    options = ("--nats-auth", str(place.keys.root), "--nats", place.server.url)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "nats-callout", *options),
        env={**os.environ, "FAIRLEAD_AUTH_KEYS_FILE": str(place.keys_file)},
        cwd=place.keys.root.parent,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(TIMEOUT_S * 2):
            first = await process.stderr.readline()
            assert not await is_refused(place, entry, token=key)
            process.terminate()
            rest = await process.stderr.read()
            assert await process.wait() == 0
        assert b"ready" in first
        assert f"key:{entry.id}".encode() in rest
        assert key.encode() not in rest
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_new_tenant_connects_after_a_reload(place: Place) -> None:
    """B9: a tenant needs no static principal, and the callout needs no restart."""
    key, entry = place.mint(tenant="newcomer")

    async with place.callout():
        assert await is_refused(place, entry, token=key)
        write_keys(place.keys.root, KeyChanges(tenants=("newcomer",)))
        place.server.reload()
        async with asyncio.timeout(TIMEOUT_S):
            while await is_refused(place, entry, token=key):
                await asyncio.sleep(0.1)


async def test_a_new_static_key_counts_after_a_restart_of_the_server(place: Place) -> None:
    """B8: the list of static keys is a part of the callout, which no server reloads."""
    (place.keys.seed_file("provision")).unlink()
    said = write_keys(place.keys.root, KeyChanges())
    address = place.keys.service_address(place.server.url, "provision")

    place.server.reload()
    with pytest.raises(LogUnavailable):
        await missing_streams(address)
    place.server.kill()
    place.server.start()

    assert await missing_streams(address)
    assert "restart" in said[-1]


def test_the_callout_stays_until_a_command_ends_it(tmp_path: Path) -> None:
    """B8: a repeated command keeps seeds and tenants; `--no-callout` removes both."""
    write_keys(tmp_path, KeyChanges(callout=True, tenants=("acme",)))
    seeds = [(tmp_path / name).read_bytes() for name in ("callout.nk", "callout-issuer.nk")]

    said = write_keys(tmp_path, KeyChanges(tenants=("beta",)))

    assert [(tmp_path / n).read_bytes() for n in ("callout.nk", "callout-issuer.nk")] == seeds
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    config = (tmp_path / "auth.conf").read_text()
    assert '"TENANT-acme" {' in config
    assert '"TENANT-beta" {' in config
    assert "restart" in said[-1]
    write_keys(tmp_path, KeyChanges(callout=False))
    assert not list(tmp_path.glob("callout*"))
    assert "auth_callout" not in (tmp_path / "auth.conf").read_text()
    with pytest.raises(UsageError, match="--callout"):
        write_keys(tmp_path, KeyChanges(tenants=("beta",)))
    with pytest.raises(UsageError, match="--tenant"):
        write_keys(tmp_path, KeyChanges(callout=True, tenants=("no tenant",)))


@pytest.mark.parametrize("env", [{}, {"FAIRLEAD_AUTH_MODE": "open"}], ids=["no keys", "open"])
def test_a_callout_that_could_know_nobody_does_not_start(
    env: dict[str, str], tmp_path: Path
) -> None:
    """B8: the mode `open` would make every client the administrator of a tenant."""
    write_keys(tmp_path, KeyChanges(callout=True, tenants=("default",)))

    with pytest.raises(UsageError, match="keys_file"):
        build_callout(load(None, env), KeyDirectory(tmp_path))


@pytest.mark.parametrize("data", [b"", b"a.b", b"a.!.c", b"a.e30.c", b"a.W10.c", b"\xff.e30.c"])
def test_a_question_that_cannot_be_read_is_named(data: bytes) -> None:
    with pytest.raises(BadCalloutRequest):
        parse_request(data)
