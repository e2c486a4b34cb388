"""How long the certificates of the nats-servers still count, as a client sees them."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from fairlead_cli.checks import Finding
from fairlead_schema.identity.nats_address import NatsAddress

WARN_BEFORE: Final = timedelta(days=30)
PORT: Final = 4222
MEND: Final = "run `fairlead secrets DIR`, give the new files to the nats-servers and reload them"


async def check_certificates(address: NatsAddress, *, timeout_s: float) -> Finding | None:
    """Warn of the certificate that ends first. None without TLS, or if nobody can be asked."""
    if address.tls_ca is None:
        return None
    ends = [await _read_end(url, address.tls_ca, timeout_s) for url in address.servers]
    known = [end for end in ends if end is not None]
    if not known:
        return None  # The check of the connection says why.
    left = min(known) - datetime.now(UTC)
    detail = f"the first certificate of nats-server ends in {left.days} days"
    if left < WARN_BEFORE:
        return Finding("certificates", "warn", detail, MEND)
    return Finding("certificates", "ok", detail)


async def _read_end(url: str, authority: str, timeout_s: float) -> datetime | None:
    parts = urlsplit(url)
    try:
        context = ssl.create_default_context(cafile=authority)
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or PORT)
            try:
                await reader.readline()  # A nats-server says who it is before it asks for TLS.
                await writer.start_tls(context, server_hostname=parts.hostname)
                certificate = writer.get_extra_info("peercert")
            finally:
                # A farewell over TLS would wait for the server, and nothing was asked of it.
                writer.transport.abort()
    except (OSError, TimeoutError, ValueError):
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
