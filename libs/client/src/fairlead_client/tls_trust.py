"""Whom a client trusts. Certificates take time to load, so only addresses with TLS do."""

import ssl


def trust_of(url: str) -> ssl.SSLContext | bool:
    """What httpx checks a server against: its own list, or nobody where there is no TLS."""
    if url.lower().startswith("https:"):
        return True
    # It still checks, so a redirect to TLS would fail and not go unchecked.
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
