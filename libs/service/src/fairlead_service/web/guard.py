"""Guards addresses: no private, loopback, link-local or metadata address is reached.

A name is resolved once, and the connection goes to the address that was checked. So a name that
resolves differently the second time changes nothing.
"""

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from fairlead_service.web.name_lookup import LOOKUPS

SCHEMES: Final = {"http": 80, "https": 443}
URL_LENGTH_MAX: Final = 8192
_ESCAPED_DOT: Final = re.compile("%2e", re.IGNORECASE)


class AddressRefused(Exception):
    """A URL is malformed, or nobody may connect to where it leads. The text is for people."""


class NameUnresolved(AddressRefused):
    """Nobody knows the address of a name now. Later somebody may."""


Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

# Networks of special use that some releases of Python call global, and the host of Azure for its machines.
_SPECIAL: Final = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "3fff::/20"))
)
# Addresses that contain an IPv4 address, which decides.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL."""

    url: str
    scheme: str
    host: str
    port: int

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: what a permission for this URL is about."""
        return (self.scheme, self.host.lower(), self.port)

    @property
    def authority(self) -> str:
        """Host and port as in a `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == SCHEMES[self.scheme] else f"{host}:{self.port}"

    @property
    def canonical(self) -> str:
        """The URL in the form in which every spelling of it is judged."""
        parts = urlsplit(self.url)
        authority = replace(self, host=_canonical_host(self.host)).authority
        path = _canonical_path(parts.path)
        return urlunsplit((self.scheme, authority, path, parts.query, parts.fragment))


def _canonical_host(host: str) -> str:
    """The name as it is resolved: other dots and letters may stand for the usual ones."""
    try:
        name = host.encode("idna").decode("ascii")
    except UnicodeError:
        name = host
    return name.lower().removesuffix(".")


def _canonical_path(path: str) -> str:
    """The path without `.` and `..`, as the client sends it and as servers understand it."""
    names: list[str] = []
    for name in _ESCAPED_DOT.sub(".", path).split("/"):
        if name == "..":
            del names[max(len(names) - 1, 1) :]
        elif name != ".":
            names.append(name)
    return "/".join(names) or "/"


def parse_target(url: str) -> Target:
    """Parse and check a URL. Raises AddressRefused."""
    if len(url) > URL_LENGTH_MAX:
        raise AddressRefused(f"The URL is longer than {URL_LENGTH_MAX} characters")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise AddressRefused("The URL holds a space or a control character")
    if "\\" in url:
        # Rules and some programs read it as a slash, so the host would be another one for each.
        raise AddressRefused("The URL holds a backslash: write a slash, or %5C")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused(f"Not a URL: {error}") from error
    if parts.scheme not in SCHEMES:
        raise AddressRefused("URL must use http:// or https://")
    if not parts.hostname:
        raise AddressRefused("The URL names no host")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("The URL carries credentials, which are not sent")
    if port == 0:
        raise AddressRefused("The URL names port 0, at which nobody answers")
    return Target(url, parts.scheme, parts.hostname, port or SCHEMES[parts.scheme])


def is_private_literal(target: Target) -> bool:
    """Whether a URL names a private address itself, and no name."""
    try:
        return not is_public(ipaddress.ip_address(target.host.partition("%")[0]))
    except ValueError:
        return False


async def resolve_address(target: Target, *, private: bool) -> str:
    """The address to connect to. Raises AddressRefused if any address of the name is forbidden."""
    try:
        found = await LOOKUPS.find_addresses(target.host)
    except (OSError, UnicodeError) as error:
        raise NameUnresolved(f"{target.host} cannot be resolved") from error
    addresses = [address.partition("%")[0] for address in found]
    for address in addresses:
        if not private and not is_public(ipaddress.ip_address(address)):
            raise AddressRefused(f"{target.host} leads to a private address, which is not allowed")
    if not addresses:
        raise AddressRefused(f"{target.host} has no address")
    # IPv4 works on every network.
    return min(addresses, key=lambda address: ":" in address)


def is_public(address: Address) -> bool:
    """Whether an address, or the IPv4 address inside it, belongs to the public network."""
    inner = _contained_address(address)
    if inner is not None:
        return is_public(inner)
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False
    if any(address in network for network in _SPECIAL):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _contained_address(address: Address) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or int(address) >> 32 == 0:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
