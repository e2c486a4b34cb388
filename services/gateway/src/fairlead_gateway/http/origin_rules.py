"""Which web pages may call this server. Pure: a web page cannot forge the headers that count here.

A browser sends `Host`, `Origin` and `Sec-Fetch-Site` by itself. The rules hold with and without
tokens, on every route (FINDINGS B1): a page of another origin reaches nothing, and a foreign name
that was pointed at this machine (DNS rebinding) reaches nothing either.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fairlead_service.identity.loopback import is_loopback

_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]@]+)(?::\d{1,5})?")
# The fetch of Node sends this one too. A browser sends an `Origin` with it, whenever it changes something.
_ALSO_OF_NODE: Final = (b"sec-fetch-mode", b"cors")
OWN_SITE: Final = frozenset({"same-origin", "none"})


@dataclass(frozen=True, slots=True)
class OriginRules:
    """The names of this server besides loopback, and the other origins that may call it."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BrowserHeaders:
    """The headers of a request by which browsers say where the request comes from."""

    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    fetch_sites: tuple[str, ...]
    from_browser: bool
    """Whether any header is there that only browsers send."""


def browser_headers(headers: Iterable[tuple[bytes, bytes]]) -> BrowserHeaders:
    """Pick the headers that the rules read."""
    hosts, origins, sites, from_browser = [], [], [], False
    for name, value in headers:
        if name == b"host":
            hosts.append(value.decode("latin-1").lower())
        elif name == b"origin":
            origins.append(value.decode("latin-1").lower())
        elif name.startswith(b"sec-fetch-") and (name, value) != _ALSO_OF_NODE:
            from_browser = True
            if name == b"sec-fetch-site":
                sites.append(value.decode("latin-1").lower())
    return BrowserHeaders(
        tuple(hosts), tuple(origins), tuple(sites), from_browser=from_browser or bool(origins)
    )


def allowed_origin(rules: OriginRules, headers: BrowserHeaders) -> str | None:
    """The configured origin that sent the request; None if no configured one did."""
    origin = headers.origins[0] if len(headers.origins) == 1 else None
    return origin if origin in rules.origins else None


def complaint(
    rules: OriginRules, headers: BrowserHeaders, *, opens_page: bool = False
) -> str | None:
    """Why the request is refused; None if it may pass.

    A link of another site may open a page of the console: the page holds nothing of anybody.
    """
    if len(headers.hosts) != 1 or not _is_own_host(rules, headers.hosts[0]):
        return "The Host header does not name this server: add the name to [gateway] hosts"
    if allowed_origin(rules, headers) is not None:
        return None
    own = {f"http://{headers.hosts[0]}", f"https://{headers.hosts[0]}"}
    if len(headers.origins) > 1 or not own.issuperset(headers.origins):
        return "A page of another origin sent the request: add the origin to [gateway] origins"
    if not opens_page and not OWN_SITE.issuperset(headers.fetch_sites):
        return "A page of another site sent the request"
    return None


def _is_own_host(rules: OriginRules, host: str) -> bool:
    match = _AUTHORITY.fullmatch(host)
    if match is None:
        return False
    return is_loopback(match[1]) or match[1] in rules.hosts or host in rules.hosts
