"""Who connects to NATS, and with which credentials. They are read again for each connection."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead_client.credentials import TokenSource
from fairlead_client.errors import TokenUnavailable
from fairlead_client.local_stack import STATE, read_run_file
from fairlead_client.tls_trust import NATS_AUTHORITY, load_trust
from fairlead_schema.identity.nats_address import identity_inbox, redact_url
from fairlead_schema.identity.subject_token import principal_token
from fairlead_schema.ids import DEFAULT_TENANT

DEFAULT_URL: Final = "nats://127.0.0.1:4222"
LOCAL_PRINCIPAL: Final = "local"
CONNECT_S: Final = 5
"""How long one server may take to connect."""


@dataclass(frozen=True, slots=True)
class NatsLogin:
    """The servers, the principal, and one proof: a seed file, a creds file, or a key or token of HTTP.

    A token needs the auth callout (docs/security/nats.md). Without a proof the servers must allow all.
    """

    url: str = field(default=DEFAULT_URL, repr=False)
    """One or several servers, separated by commas."""
    tenant: str = DEFAULT_TENANT
    principal: str = LOCAL_PRINCIPAL
    """As the audit names it: `service:billing`, `key:…`, `user:…`."""
    nkey_file: Path | None = None
    creds_file: Path | None = None
    token: TokenSource | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(server.strip() for server in self.url.split(","))

    @property
    def inbox_prefix(self) -> str:
        """The inbox that NATS grants to this principal alone."""
        return identity_inbox(principal_token(self.principal).replace(":", "-"))

    @property
    def address(self) -> str:
        """The servers without any password."""
        return redact_url(self.url)

    def read_proof(self) -> bytes:
        """What the files prove now, to notice a change. Raises TokenUnavailable."""
        file = self.nkey_file or self.creds_file
        if file is None:
            return b""
        try:
            return file.read_bytes()
        except OSError as error:
            raise TokenUnavailable(str(file), error.strerror or str(error)) from error


def find_login(*, state: Path = STATE, environment: Mapping[str, str] = os.environ) -> NatsLogin:
    """The login that the environment names, else that of the stack that runs on this machine."""
    local = read_run_file(state)
    url = environment.get("FAIRLEAD_NATS_URL")
    seed, creds = (
        environment.get(name) for name in ("FAIRLEAD_NATS_NKEY_FILE", "FAIRLEAD_NATS_CREDS_FILE")
    )
    token = environment.get("FAIRLEAD_NATS_TOKEN")
    if url is None and not (seed or creds or token):
        url, seed = local.get("nats"), local.get("nats_nkey")
    return NatsLogin(
        url or DEFAULT_URL,
        environment.get("FAIRLEAD_TENANT", DEFAULT_TENANT),
        environment.get("FAIRLEAD_NATS_PRINCIPAL", LOCAL_PRINCIPAL),
        Path(seed) if seed else None,
        Path(creds) if creds else None,
        token,
        _find_tls(environment),
    )


def _find_tls(environment: Mapping[str, str]) -> ssl.SSLContext | None:
    """Whom to trust, and the certificate of the client. Raises ServerUntrusted, TokenUnavailable."""
    authority, certificate, key = (
        environment.get(name)
        for name in (NATS_AUTHORITY, "FAIRLEAD_NATS_TLS_CERT", "FAIRLEAD_NATS_TLS_KEY")
    )
    if not (authority or certificate):
        return None
    context = (
        ssl.create_default_context() if not authority else load_trust(authority, NATS_AUTHORITY)
    )
    if certificate:
        try:
            context.load_cert_chain(certificate, key)
        except OSError as error:
            raise TokenUnavailable(certificate, error.strerror or str(error)) from error
    return context
