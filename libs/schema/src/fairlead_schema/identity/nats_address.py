"""The address of NATS with its credentials by file name, and addresses without their secrets."""

import re
from dataclasses import dataclass, field, replace
from typing import Final

from typing_extensions import override

INBOX_ROOT: Final = "_INBOX"
"""Every inbox begins with it. Servers of verbs answer to no other subject."""

CLIENT_SUBSCRIPTIONS_MAX: Final = 1_000
CLIENT_PAYLOAD_BYTES_MAX: Final = 1024 * 1024
"""What a connection of a tenant's own client may take. NATS ends a connection that takes more."""

_USER_INFO: Final = re.compile(r"(?<![^\s,;\"'])((?:[A-Za-z][A-Za-z0-9+.-]*://)?)[^\s/,]*@")


@dataclass(frozen=True, slots=True)
class NatsAddress:
    """Where NATS is, and the files that prove who connects. The text of an address has no secret."""

    url: str = field(repr=False)
    """One or several servers, separated by commas."""
    nkey_file: str | None = None
    creds_file: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    inbox_prefix: str = INBOX_ROOT

    @property
    def servers(self) -> list[str]:
        return self.url.split(",")

    @property
    def demands_tls(self) -> bool:
        """Whether a connection without TLS is refused."""
        return self.tls_ca is not None or self.tls_cert is not None

    def for_identity(self, identity: str) -> "NatsAddress":
        """The address with the inbox of an identity, unless the configuration chose an inbox."""
        if self.inbox_prefix != INBOX_ROOT:
            return self
        return replace(self, inbox_prefix=identity_inbox(identity))

    @override
    def __str__(self) -> str:
        return redact_url(self.url)


def identity_inbox(identity: str) -> str:
    """The inbox prefix that NATS grants to one identity alone."""
    return f"{INBOX_ROOT}_{identity}"


def redact_url(text: str) -> str:
    """A text without the user and the password of every URL in it."""
    return _USER_INFO.sub(r"\1", text)
