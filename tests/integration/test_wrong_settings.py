"""Wrong keys, certificates, addresses and passwords: one line names cause and cure, and nothing crashes.

A service with a wrong setting lives, is not ready, and starts to serve by itself when the cause is gone.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from fairlead_cli.deployment.certificates import Authority
from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.grants.services import ServiceIdentity
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.provision import provision
from fairlead_schema import subjects
from fairlead_testing.compose_postgres import PORT, PostgresImage
from fairlead_testing.lone_service import run_service
from fairlead_testing.nats import Server, run_guarded_server

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyDirectory:
    directory = KeyDirectory(tmp_path_factory.mktemp("nats") / "keys")
    directory.write(())
    return directory


@pytest.fixture(scope="module")
def server(keys: KeyDirectory) -> Iterator[Server]:
    with run_guarded_server(keys) as running:
        yield running


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with passwords; the answer is its address."""
    address = f"127.{random.randint(1, 254)}.{random.randint(0, 254)}.9"  # noqa: S311
    image = PostgresImage(tmp_path_factory.mktemp("postgres"), address)
    image.start({"POSTGRES_USER": "fairlead", "POSTGRES_DB": "fairlead"}, "good")
    yield f"{address}:{PORT}"
    image.stop()


@pytest.fixture
def nats(server: Server, keys: KeyDirectory) -> dict[str, str]:
    """Settings of a service that may do everything on NATS."""
    return settings(server, keys, "operator")


async def test_an_auditor_without_streams_says_so_and_begins_when_they_are_there(
    tmp_path: Path,
) -> None:
    """It may be started before `fairlead provision`, and stopped while NATS is away."""
    keys = KeyDirectory(tmp_path / "keys")
    keys.write(())
    with run_guarded_server(keys) as server:
        with run_service("audit", settings(server, keys, "audit"), tmp_path) as service:
            said = service.wait_for_complaint("does not exist: run `fairlead provision`")
            assert said["ready"] is False

            await provision(keys.service_address(server.url, "provision"))
            service.wait_until_ready()
            server.kill()
            service.wait_for_complaint("nats")
        assert not service.lines_with("Traceback")
        assert not service.lines_with('"level":"error"')


class WrongAddress(NamedTuple):
    """An address of Postgres, what is said of it, and what helps."""

    dsn: str
    cause: str
    cure: str


def settings(server: Server, keys: KeyDirectory, identity: ServiceIdentity) -> dict[str, str]:
    address = keys.service_address(server.url, identity)
    return {
        "FAIRLEAD_NATS_URL": address.url,
        "FAIRLEAD_NATS_NKEY_FILE": str(address.nkey_file),
        "FAIRLEAD_AUTH_MODE": "open",
    }


@pytest.mark.parametrize(
    "name", ["ingest", "runner", "tools", "projector", "hooks", "gateway", "audit"]
)
def test_a_key_of_another_deployment_is_named_until_the_right_one_is_there(
    server: Server, keys: KeyDirectory, tmp_path: Path, name: ServiceIdentity
) -> None:
    """The key file is replaced under the running service, which needs no restart."""
    foreign = KeyDirectory(tmp_path / "foreign")
    foreign.write(())
    file = tmp_path / "nkey"
    file.write_text(foreign.seed_file(name).read_text())
    env = {**settings(server, keys, name), "FAIRLEAD_NATS_NKEY_FILE": str(file)}

    with run_service(name, env, tmp_path) as service:
        said = service.wait_for_complaint("refused the key in nats.nkey_file")
        assert said["ready"] is False
        assert "`fairlead secrets`" in str(said["away"])
        assert "reload the nats-servers" in str(said["away"])

        file.write_text(keys.seed_file(name).read_text())
        service.wait_until_gone("refused the key")
    assert 1 <= len(service.lines_with("refused the key")) <= 10
    assert not service.lines_with("Traceback")


def test_an_expired_certificate_is_named_until_it_is_renewed(tmp_path: Path) -> None:
    """nats-server is reloaded with a new certificate; the service connects by itself."""
    place = tmp_path / "nats"
    keys = KeyDirectory(place / "keys")
    place.mkdir()
    keys.write(())
    authority, long_ago = Authority(tmp_path / "authority"), datetime.now(UTC) - timedelta(days=800)
    authority.directory.mkdir()
    authority.ensure(long_ago)
    write_certificate(authority, place, long_ago)
    tls = f'tls {{ cert_file: "{place}/tls.crt", key_file: "{place}/tls.key" }}'
    with run_guarded_server(keys, tls) as server:
        env = settings(server, keys, "hooks")
        env["FAIRLEAD_NATS_TLS_CA"] = str(authority.certificate_file)

        with run_service("hooks", env, tmp_path) as service:
            said = service.wait_for_complaint("certificate has expired")
            assert "renew it with `fairlead secrets`, and reload the nats-servers" in str(said)

            write_certificate(authority, place, datetime.now(UTC))
            server.reload()
            service.wait_until_ready()
        assert not service.lines_with("Traceback")


def write_certificate(authority: Authority, place: Path, now: datetime) -> None:
    certificate, key = authority.issue(("127.0.0.1",), now)
    (place / "tls.crt").write_text(certificate)
    (place / "tls.key").write_text(key)


async def test_a_server_without_streams_is_named_until_they_are_provisioned(tmp_path: Path) -> None:
    keys = KeyDirectory(tmp_path / "keys")
    keys.write(())
    with run_guarded_server(keys) as server:
        env = settings(server, keys, "ingest")
        with run_service("ingest", env, tmp_path) as service:
            said = service.wait_for_complaint("does not exist: run `fairlead provision`")
            assert "intake" in said["degraded"]

            await provision(keys.service_address(server.url, "provision"))
            async with connect(keys.service_address(server.url, "operator"), name="test") as log:
                subject = subjects.api("default", "session.interrupt")
                body = b'{"sessionID": "ses_nowhere"}'
                answer = await log.requests.request(subject, body, timeout_s=30)
            assert b"SessionNotFoundError" in answer
            service.wait_until_gone("fairlead provision")


WRONG = (
    WrongAddress("fairlead@{}/nowhere?passfile={}", "does not exist", "correct its name"),
    WrongAddress("nobody@{}/fairlead?passfile={}", "password", "fairlead migrate"),
    WrongAddress("fairlead@db.invalid/fairlead", "db.invalid", "correct the host"),
    WrongAddress("fairlead@127.0.0.1:{closed}/fairlead", "refused", "start Postgres"),
    WrongAddress(
        "fairlead@127.0.0.1:port/fairlead", "port", "postgresql://USER@HOST:PORT/DATABASE"
    ),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.cure)
@pytest.mark.parametrize("name", ["projector", "gateway"])
def test_a_wrong_address_of_postgres_is_named_with_its_cure(
    nats: dict[str, str], postgres: str, tmp_path: Path, name: str, wrong: WrongAddress
) -> None:
    """The gateway is degraded and serves the rest; the projector waits."""
    file = write_passwords(tmp_path, "good" if "nowhere" in wrong.dsn else "wrong")
    dsn = wrong.dsn.format(postgres, file, closed=free_port())
    env = {**nats, "FAIRLEAD_POSTGRES_DSN": f"postgresql://{dsn}"}

    with run_service(name, env, tmp_path) as service:
        said = str(service.wait_for_complaint(wrong.cure))

        assert wrong.cause in said
        assert not service.lines_with("Traceback")


def test_a_password_that_changes_under_a_running_projector_needs_no_restart(
    nats: dict[str, str], postgres: str, tmp_path: Path
) -> None:
    """The server gets a new password and ends the connections; the file follows a little later."""
    file = write_passwords(tmp_path, "good")
    dsn = f"postgresql://fairlead@{postgres}/fairlead?passfile={file}"
    env = {**nats, "FAIRLEAD_POSTGRES_DSN": dsn}
    with run_service("projector", env, tmp_path) as service:
        service.wait_for_complaint("KV_fairlead-checkpoint does not exist")
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute("ALTER ROLE fairlead PASSWORD 'the next one'")
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE usename = 'fairlead' AND pid <> pg_backend_pid()"
            )
        try:
            service.wait_for_complaint("correct the password")
            write_passwords(tmp_path, "the next one")
            service.wait_until_gone("correct the password")
        finally:
            write_passwords(tmp_path, "the next one")
            with psycopg.connect(dsn, autocommit=True) as admin:
                admin.execute("ALTER ROLE fairlead PASSWORD 'good'")


def write_passwords(place: Path, password: str) -> Path:
    file = place / "pgpass"
    file.write_text(f"*:*:*:*:{password}\n")
    file.chmod(0o600)
    return file
