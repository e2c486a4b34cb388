"""Keys and certificates in files: who connects, and what an error says when a file is wrong."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.errors import CredentialsUnusable, LogUnavailable
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.provision import missing_streams
from fairlead_schema.identity.nats_address import NatsAddress, redact_url
from fairlead_testing.certificates import make_certificates
from fairlead_testing.nats import Server, run_guarded_server
from fairlead_testing.nats_tokens import account_key, credentials, operator_key, user_key

pytestmark = pytest.mark.integration

SECRET: Final = "planted-secret"  # noqa: S105 - it opens nothing
TIMEOUT_S: Final = 30.0


@pytest.fixture
def keys(tmp_path: Path) -> KeyDirectory:
    directory = KeyDirectory(tmp_path / "keys")
    directory.write(())
    return directory


@pytest.fixture
def guarded_server(keys: KeyDirectory) -> Iterator[Server]:
    with run_guarded_server(keys) as running:
        yield running


async def test_a_key_that_was_replaced_is_read_again_at_the_next_connection(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B8: keys rotate without a restart: new seed, new grants, one reload of the server."""
    seed = keys.seed_file("operator")
    reconnected = asyncio.Event()
    async with open_link(keys.service_address(guarded_server.url, "operator"), name="test") as link:
        link.on_reconnect(reconnected.set)
        seed.unlink()
        keys.write(())
        guarded_server.reload()
        async with asyncio.timeout(TIMEOUT_S):
            await reconnected.wait()
        assert (await link.api("STREAM.NAMES"))["total"] == 0


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda _path: None, "No such file"),
        (lambda path: path.write_text(SECRET), "not an nkey seed"),
        (lambda path: path.write_text(""), "not an nkey seed"),
    ],
    ids=["missing", "rubbish", "empty"],
)
async def test_a_key_file_that_cannot_be_used_is_named_and_never_shown(
    prepare: Callable[[Path], object], reason: str, guarded_server: Server, tmp_path: Path
) -> None:
    """B8: the error names the setting and the file, not what the file holds."""
    path = tmp_path / "wrong.nk"
    prepare(path)

    with pytest.raises(CredentialsUnusable, match=reason) as error:
        await missing_streams(NatsAddress(guarded_server.url, nkey_file=str(path)))

    assert "nats.nkey_file" in str(error.value)
    assert "`fairlead secrets`" in str(error.value), "the cure"
    assert SECRET not in repr(error.value)


@pytest.mark.usefixtures("impatient")
async def test_an_address_with_a_password_never_shows_the_password(
    guarded_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """B8: neither the error nor any log line nor the value itself has the password."""
    caplog.set_level(logging.DEBUG)
    address = NatsAddress(f"nats://user:{SECRET}@127.0.0.1:{guarded_server.port}")

    with pytest.raises(LogUnavailable) as error:
        await missing_streams(address)

    assert f"127.0.0.1:{guarded_server.port}" in str(error.value)
    shown = (str(error.value), repr(error.value), str(address), repr(address), caplog.text)
    assert not any(SECRET in text for text in shown)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("nats://user:pass@host:4222", "nats://host:4222"),
        ("nats://token@host", "nats://host"),
        ("tls://u:p@a:1,tls://u:p@b:2", "tls://a:1,tls://b:2"),
        ("user:pass@host:4222", "host:4222"),
        ("nats://user:p@ss@host", "nats://host"),
        ("nats://host:4222", "nats://host:4222"),
    ],
)
def test_a_redacted_address_has_no_user_and_no_password(url: str, shown: str) -> None:
    """B8: the same rule for every place that shows an address."""
    assert redact_url(url) == shown


@pytest.fixture
def encrypted(keys: KeyDirectory) -> Iterator[Server]:
    """A server that takes only encrypted connections of clients with a certificate."""
    ca, cert, key = make_certificates(keys.root.parent, "ours")
    tls = f'tls {{ cert_file: "{cert}", key_file: "{key}", ca_file: "{ca}", verify: true }}'
    running = Server(keys.root.parent, free_port(), more=f'include "keys/auth.conf"\n{tls}')
    running.start()
    try:
        yield running
    finally:
        running.kill()


@pytest.mark.usefixtures("impatient")
async def test_a_connection_is_encrypted_and_both_sides_are_proved(
    encrypted: Server, keys: KeyDirectory, tmp_path: Path
) -> None:
    """B8: the settings name the authority, the certificate and its key."""
    plain = keys.service_address(encrypted.url, "operator")
    ca = str(tmp_path / "ours-ca.pem")
    proved = replace(
        plain, tls_ca=ca, tls_cert=str(tmp_path / "ours.pem"), tls_key=str(tmp_path / "ours.key")
    )

    assert await missing_streams(proved)
    with pytest.raises(LogUnavailable):
        await missing_streams(replace(plain, tls_ca=ca))


@pytest.mark.usefixtures("impatient")
async def test_a_server_without_encryption_is_refused_if_the_settings_demand_it(
    guarded_server: Server, keys: KeyDirectory, tmp_path: Path
) -> None:
    """B8: whoever stands between us and NATS cannot talk a client out of TLS."""
    ca, _cert, _key = make_certificates(tmp_path, "ours")
    address = replace(keys.service_address(guarded_server.url, "operator"), tls_ca=str(ca))

    with pytest.raises(LogUnavailable, match="offers no TLS"):
        await missing_streams(address)


@pytest.mark.usefixtures("impatient")
async def test_a_server_of_another_authority_is_refused_with_its_reason(
    encrypted: Server, keys: KeyDirectory, tmp_path: Path
) -> None:
    """B8: nobody between us and NATS reads along."""
    foreign, cert, key = make_certificates(tmp_path, "foreign")
    address = replace(
        keys.service_address(encrypted.url, "operator"),
        tls_ca=str(foreign),
        tls_cert=str(cert),
        tls_key=str(key),
    )

    with pytest.raises(
        LogUnavailable, match=r"certificate that is refused \((self|unable to get local issuer)"
    ):
        await missing_streams(address)
    with pytest.raises(CredentialsUnusable, match=r"nats\.tls_ca"):
        await missing_streams(replace(address, tls_ca=str(tmp_path / "nowhere.pem")))


UNLIMITED: Final = dict.fromkeys(
    ("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1
)
STORAGE: Final = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)


@pytest.fixture
def with_tokens(tmp_path: Path) -> Iterator[tuple[Server, Path]]:
    """A server that knows its users by signed tokens, and the credentials file of one user."""
    operator, account, system, user = operator_key(), account_key(), account_key(), user_key()
    limits = {**UNLIMITED, **STORAGE}
    account_jwt = operator.sign(account.public, "platform", {"type": "account", "limits": limits})
    system_jwt = operator.sign(system.public, "system", {"type": "account", "limits": UNLIMITED})
    file = tmp_path / "user.creds"
    user_jwt = account.sign(user.public, "operator", {"type": "user", "subs": -1, "data": -1})
    file.write_text(credentials(user_jwt, user.seed))
    operator_jwt = operator.sign(operator.public, "operator", {"type": "operator"})
    more = (
        f"operator: {operator_jwt}\nresolver: MEMORY\nsystem_account: {system.public}\n"
        f"resolver_preload {{\n{account.public}: {account_jwt}\n{system.public}: {system_jwt}\n}}"
    )
    running = Server(tmp_path, free_port(), more=more)
    running.start()
    try:
        yield running, file
    finally:
        running.kill()


@pytest.mark.usefixtures("impatient")
async def test_a_credentials_file_connects_to_a_server_with_signed_users(
    with_tokens: tuple[Server, Path], tmp_path: Path
) -> None:
    """B8: `nats.creds_file` works, and a missing or foreign file is refused."""
    server, file = with_tokens
    address = NatsAddress(server.url, creds_file=str(file))
    stranger = tmp_path / "stranger.creds"
    foreign = account_key()
    user = user_key()
    stranger.write_text(credentials(foreign.sign(user.public, "x", {"type": "user"}), user.seed))

    assert await missing_streams(address)
    with pytest.raises(LogUnavailable, match=r"(?i)authorization violation"):
        await missing_streams(replace(address, creds_file=str(stranger)))
    with pytest.raises(CredentialsUnusable, match=r"nats\.creds_file"):
        await missing_streams(replace(address, creds_file=str(tmp_path / "nowhere.creds")))
