"""The doctor tells of a certificate before it expires: afterwards nobody connects any more."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlead_cli.deployment.certificates import SERVER_LIFE, Authority
from fairlead_cli.deployment.doctor.certificate_age import check_certificates
from fairlead_cli.embedded.ports import free_port
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(("days", "status"), [(10, "warn"), (300, "ok")])
def test_a_certificate_that_expires_soon_is_a_warning(
    days: int, status: str, tmp_path: Path
) -> None:
    issued = datetime.now(UTC) - SERVER_LIFE + timedelta(days=days, hours=1)
    authority = Authority(tmp_path / "authority")
    authority.directory.mkdir()
    authority.ensure(issued)
    certificate, key = authority.issue(("127.0.0.1",), issued)
    (tmp_path / "tls.crt").write_text(certificate)
    (tmp_path / "tls.key").write_text(key)
    tls = f'tls {{ cert_file: "{tmp_path}/tls.crt", key_file: "{tmp_path}/tls.key" }}'
    server = Server(tmp_path, free_port(), more=tls)
    server.start()
    try:
        address = NatsAddress(server.url, tls_ca=str(authority.certificate_file))
        finding = asyncio.run(check_certificates(address, timeout_s=5))
    finally:
        server.kill()

    assert finding is not None
    assert (finding.status, f"{days} days" in finding.detail) == (status, True)
    assert ("fairlead secrets" in str(finding.mend)) is (status == "warn")


def test_who_uses_no_tls_or_cannot_connect_is_told_elsewhere() -> None:
    address = NatsAddress("nats://127.0.0.1:9")

    assert asyncio.run(check_certificates(address, timeout_s=1)) is None
    assert (
        asyncio.run(check_certificates(NatsAddress(address.url, tls_ca="no"), timeout_s=1)) is None
    )
