"""HTTP to the processes of this machine."""

import ssl
from typing import Final

import httpx

# Without certificates: no local process uses TLS, and to load certificates costs 30 ms for each client.
_NO_CERTIFICATES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def local_client(timeout_s: float) -> httpx.AsyncClient:
    """A client without TLS that ignores proxies. It is cheap, so every probe has its own."""
    return httpx.AsyncClient(timeout=timeout_s, trust_env=False, verify=_NO_CERTIFICATES)
