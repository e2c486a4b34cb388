"""A certificate authority of one deployment, and the certificate of its nats-servers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairlead_cli.embedded.private_files import write_private
from fairlead_cli.errors import CommandError

AUTHORITY_LIFE: Final = timedelta(days=3650)
SERVER_LIFE: Final = timedelta(days=397)
RENEW_BEFORE: Final = timedelta(days=60)
# A certificate is valid at once on a machine whose clock is a little behind.
CLOCK_DIFFERENCE: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Authority:
    """The files of the authority. Its key stays with the operators."""

    directory: Path

    @property
    def certificate_file(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def key_file(self) -> Path:
        return self.directory / "ca.key"

    def ensure(self, now: datetime) -> bool:
        """Make the authority if it is missing. Returns whether it is new. Raises CommandError."""
        if self.certificate_file.exists() and self.key_file.exists():
            if _load(self.certificate_file).not_valid_after_utc <= now:
                raise CommandError(
                    f"{self.certificate_file} has expired: delete {self.directory}, run the command"
                    " again and restart the nats-servers and the services"
                )
            return False
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Fairlead deployment")])
        certificate = (
            _builder(name, name, key, now, AUTHORITY_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        write_private(self.key_file, _encode_key(key))
        write_private(self.certificate_file, _encode(certificate))
        return True

    def issue(self, hosts: Sequence[str], now: datetime) -> tuple[str, str]:
        """A certificate for these hosts, and its key, both as PEM."""
        authority = _load(self.certificate_file)
        signer = serialization.load_pem_private_key(self.key_file.read_bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            _builder(name, authority.subject, key, now, SERVER_LIFE)
            .add_extension(x509.SubjectAlternativeName(_names(hosts)), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            # The nodes of a cluster prove themselves to each other: each is server and client.
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
            .sign(signer, hashes.SHA256())
        )
        return _encode(certificate), _encode_key(key)


def needs_renewal(path: Path, authority: Path, hosts: Sequence[str], now: datetime) -> bool:
    """Whether a certificate is missing, soon expired, for other hosts or of another authority."""
    if not path.exists():
        return True
    certificate = _load(path)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    if set(names) != set(_names(hosts)) or certificate.not_valid_after_utc - now < RENEW_BEFORE:
        return True
    try:
        certificate.verify_directly_issued_by(_load(authority))
    except (InvalidSignature, TypeError, ValueError):
        return True
    return False


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_DIFFERENCE)
        .not_valid_after(now + life)
    )


def _names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    return [_general_name(host) for host in hosts]


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _load(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} is no certificate ({error}): delete the file") from error


def _encode(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _encode_key(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
