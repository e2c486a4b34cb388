"""The secrets of a deployment: each process gets its own, a repeat keeps them."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from fairlead_cli.__main__ import main
from fairlead_cli.deployment.certificates import AUTHORITY_LIFE, RENEW_BEFORE, SERVER_LIFE
from fairlead_cli.deployment.secrets_directory import DEFAULT_HOSTS, SecretsDirectory
from fairlead_cli.embedded.postgres.access import add_password
from fairlead_cli.errors import CommandError
from fairlead_gateway.console.sealed_cookie import Sealer
from fairlead_projector.roles.creation import read_login
from fairlead_service.identity.keys import digest_of, parse_keys

NOW = datetime(2026, 11, 18, tzinfo=UTC)
HOSTS = ("nats-1", "nats-2", "127.0.0.1")


def contents(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()
    }


def test_a_repeat_changes_nothing(tmp_path: Path) -> None:
    secrets = SecretsDirectory(tmp_path / "secrets")
    secrets.write(HOSTS, NOW)
    before = contents(secrets.root)

    lines = secrets.write(HOSTS, NOW + timedelta(days=1))

    assert lines == [f"{secrets.root}: everything is there"]
    assert contents(secrets.root) == before


def test_only_the_owner_may_read_and_each_process_finds_its_own_alone(tmp_path: Path) -> None:
    secrets = SecretsDirectory(tmp_path / "secrets")
    secrets.write(HOSTS, NOW)

    for path in secrets.root.rglob("*"):
        if not path.name.endswith(".lock"):
            assert path.stat().st_mode & 0o077 == 0, path
    assert {path.name for path in (secrets.root / "runner").iterdir()} == {"ca.crt", "nkey"}
    seeds = [
        (path / "nkey").read_text() for path in secrets.root.iterdir() if (path / "nkey").exists()
    ]
    assert len(seeds) == len(set(seeds)) >= 6


def test_the_first_key_is_an_administrators_and_the_gateway_knows_its_digest(
    tmp_path: Path,
) -> None:
    SecretsDirectory(tmp_path).write(HOSTS, NOW)

    key = (tmp_path / "operator/key").read_text().strip()
    [entry] = parse_keys((tmp_path / "gateway/keys.json").read_text()).keys

    assert entry.sha256 == digest_of(key)
    assert entry.roles == ("admin",)
    assert key not in "".join(
        text for name, text in contents(tmp_path).items() if name != "operator/key"
    )


@pytest.mark.parametrize("option", ["--secrets", "--keys-file"])
def test_a_key_counts_and_ends_for_every_reader_of_the_directory(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A schedule of a new key runs, and that of a revoked key does not, without another command."""
    secrets = SecretsDirectory(tmp_path)
    secrets.write(HOSTS, NOW)
    place = [option, str(tmp_path if option == "--secrets" else secrets.keys_file)]
    capsys.readouterr()

    assert main(["token", "create", "--role", "user", *place]) == 0
    key = capsys.readouterr().out.strip()
    readers = [tmp_path / name / "keys.json" for name in ("gateway", "hooks")]
    for reader in readers:
        assert digest_of(key) in [entry.sha256 for entry in parse_keys(reader.read_text()).keys]
    id_ = key.split("_")[1]
    assert main(["token", "revoke", id_, *place]) == 0
    for reader in readers:
        [entry] = [one for one in parse_keys(reader.read_text()).keys if one.id == id_]
        assert entry.revoked is not None


def test_a_directory_without_keys_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["token", "list", "--secrets", str(tmp_path)]) == 2
    assert "is no directory of `fairlead secrets`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_gateways_share_a_key_that_seals_the_cookies_of_the_console(tmp_path: Path) -> None:
    SecretsDirectory(tmp_path).write(HOSTS, NOW)
    first, second = (Sealer.load(tmp_path / "gateway/cookie.key") for _ in range(2))

    sealed = first.seal("cookie", "a credential", until=2)

    assert second.open("cookie", sealed, now_ms=1).text == "a credential"


def test_an_address_and_a_password_file_of_a_role_agree(tmp_path: Path) -> None:
    SecretsDirectory(tmp_path, "db.example:5433/agents").write(HOSTS, NOW)

    address = (tmp_path / "gateway/fairlead_gateway.dsn").read_text()
    file = tmp_path / "gateway/fairlead_gateway.pgpass"
    by_file = add_password(f"postgresql://fairlead_gateway@db.example/agents?passfile={file}")

    assert "@db.example:5433/agents" in address
    assert read_login(address) == read_login(by_file)


def test_the_certificate_serves_the_hosts_and_a_cluster_of_its_authority(tmp_path: Path) -> None:
    SecretsDirectory(tmp_path).write(HOSTS, NOW)

    certificate = x509.load_pem_x509_certificate((tmp_path / "nats/tls.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    context = ssl.create_default_context(cafile=str(tmp_path / "ingest/ca.crt"))
    context.load_cert_chain(tmp_path / "nats/tls.crt", tmp_path / "nats/tls.key")

    assert names.get_values_for_type(x509.DNSName) == ["nats-1", "nats-2"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("hosts", "later"),
    [(HOSTS, SERVER_LIFE - RENEW_BEFORE + timedelta(days=1)), ((*HOSTS, "nats-9"), timedelta())],
)
def test_a_certificate_that_expires_soon_or_lacks_a_host_is_issued_anew(
    tmp_path: Path, hosts: tuple[str, ...], later: timedelta
) -> None:
    secrets = SecretsDirectory(tmp_path)
    secrets.write(HOSTS, NOW)
    before = contents(tmp_path)

    lines = secrets.write(hosts, NOW + later)

    changed = {name for name, text in contents(tmp_path).items() if before[name] != text}
    assert changed == {"nats/tls.crt", "nats/tls.key"}
    assert [line for line in lines if "reload nats-server" in line]


def test_an_authority_that_was_replaced_issues_the_certificate_anew(tmp_path: Path) -> None:
    secrets = SecretsDirectory(tmp_path)
    secrets.write(HOSTS, NOW)
    for path in (tmp_path / "authority").iterdir():
        path.unlink()

    secrets.write(HOSTS, NOW)

    authority = (tmp_path / "authority/ca.crt").read_text()
    assert (tmp_path / "gateway/ca.crt").read_text() == authority
    x509.load_pem_x509_certificate(
        (tmp_path / "nats/tls.crt").read_bytes()
    ).verify_directly_issued_by(x509.load_pem_x509_certificate(authority.encode()))


def test_an_expired_authority_and_a_broken_certificate_say_what_to_do(tmp_path: Path) -> None:
    secrets = SecretsDirectory(tmp_path)
    secrets.write(HOSTS, NOW)

    with pytest.raises(CommandError, match="has expired: delete"):
        secrets.write(HOSTS, NOW + AUTHORITY_LIFE + timedelta(days=1))
    (tmp_path / "nats/tls.crt").write_text("no certificate")
    with pytest.raises(CommandError, match="delete the file"):
        secrets.write(HOSTS, NOW)


def test_the_command_says_what_it_made_and_why_it_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["secrets", str(tmp_path / "made")]) == 0
    assert f"issued for {', '.join(DEFAULT_HOSTS)}" in capsys.readouterr().out
    (tmp_path / "file").write_text("")

    assert main(["secrets", str(tmp_path / "file" / "below")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_an_address_of_postgres_may_have_options(tmp_path: Path) -> None:
    address = "db.internal:5432/fairlead?sslmode=require"
    assert main(["secrets", str(tmp_path), "--database", address]) == 0

    assert (tmp_path / "gateway/fairlead_gateway.dsn").read_text().strip().endswith(f"@{address}")


@pytest.mark.parametrize("address", ["db", "db/fairlead", "user@db:5432/fairlead", "db:x/fairlead"])
def test_an_address_of_postgres_that_no_process_could_use_is_refused(
    tmp_path: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every login would be written with it, and each service would fail on its own."""
    assert main(["secrets", str(tmp_path / "secrets"), "--database", address]) == 2

    assert "is not HOST:PORT/NAME" in capsys.readouterr().err
    assert not (tmp_path / "secrets").exists()
