"""Which hosts are this machine alone."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host name or address reaches nobody but this machine."""
    name = host.removeprefix("[").removesuffix("]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
