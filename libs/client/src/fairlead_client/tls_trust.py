"""Whom a client trusts. Certificates take time to load, so only addresses with TLS do."""

import os
import ssl
from collections.abc import Mapping
from typing import Final

from fairlead_client.errors import ServerUntrusted

HTTP_AUTHORITY: Final = "FAIRLEAD_HTTP_TLS_CA"
NATS_AUTHORITY: Final = "FAIRLEAD_NATS_TLS_CA"


def trust_of(url: str, *, environment: Mapping[str, str] = os.environ) -> ssl.SSLContext | bool:
    """What httpx checks a server against: the authority that the environment names, else the public ones.

    Where there is no TLS it trusts nobody. Raises ServerUntrusted.
    """
    if not url.lower().startswith("https:"):
        # It still checks, so a redirect to TLS would fail and not go unchecked.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority = environment.get(HTTP_AUTHORITY)
    return load_trust(authority, HTTP_AUTHORITY) if authority else True


def load_trust(authority: str, variable: str) -> ssl.SSLContext:
    """Trust the authorities of a file alone. Raises ServerUntrusted."""
    try:
        return ssl.create_default_context(cafile=authority)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ServerUntrusted(f"no certificates in {authority} ({reason})", variable) from error


def distrust_of(error: BaseException, url: str, variable: str) -> ServerUntrusted | None:
    """Why the certificate of a server was refused; None for any other error of a connection."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = f"the certificate of {url} is refused ({cause.verify_message})"
            return ServerUntrusted(reason, variable)
        cause = cause.__cause__ or cause.__context__
    return None
