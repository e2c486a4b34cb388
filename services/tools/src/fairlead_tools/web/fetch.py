"""Fetches one page: every hop checked and pinned, the body bounded as it arrives."""

import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from fairlead_tools.registry.tool import CallFailed
from fairlead_tools.web import guard

if TYPE_CHECKING:
    import httpx

BODY_BYTES_MAX: Final = 5 * 1024 * 1024
HOPS_MAX: Final = 5
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
CONNECT_S: Final = 10.0
# What we say who we are; plainly, to a page that takes us for a pretending browser.
AGENT: Final = "Mozilla/5.0 (compatible; fairlead/1.0)"
PLAIN_AGENT: Final = "fairlead"
ACCEPT: Final = {
    "markdown": "text/markdown;q=1.0, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1",
    "text": "text/plain;q=1.0, text/html;q=0.8, */*;q=0.1",
    "html": "text/html;q=1.0, application/xhtml+xml;q=0.9, */*;q=0.1",
}


@dataclass(frozen=True, slots=True)
class WebPage:
    """What a server said."""

    url: str
    mime: str
    charset: str | None
    body: bytes


async def fetch(url: str, accept: str, *, private: bool, limit: int = BODY_BYTES_MAX) -> WebPage:
    """The page behind a URL and its redirects on the same host. Raises CallFailed."""
    wanted, agent = guard.parse_target(url), AGENT
    hops = 0
    while True:
        headers = {"accept": accept, "user-agent": agent}
        async with open_request("GET", wanted, headers, private=private) as response:
            if response.status_code in REDIRECTS and "location" in response.headers:
                hops += 1
                wanted = _next(wanted, response.headers["location"], hops)
                continue
            if _is_challenge(response) and agent == AGENT:
                agent = PLAIN_AGENT
                continue
            if not response.is_success:
                raise CallFailed(f"{wanted.url} answered with status {response.status_code}")
            mime, charset = _kind(response.headers.get("content-type", ""))
            if not is_text(mime):
                raise CallFailed(f"{wanted.url} is {mime or 'of no known type'}, not text")
            return WebPage(wanted.url, mime, charset, await read_body(response, limit))


@asynccontextmanager
async def open_request(
    method: str,
    wanted: guard.Target,
    headers: Mapping[str, str],
    *,
    private: bool,
    content: bytes | None = None,
) -> AsyncIterator["httpx.Response"]:
    """One request to the checked address, its body still unread. Raises CallFailed."""
    import httpx  # noqa: PLC0415

    address = await guard.resolve_address(wanted, private=private)
    parts = urlsplit(wanted.url)
    host = f"[{address}]" if ":" in address else address
    url = urlunsplit((parts.scheme, f"{host}:{wanted.port}", parts.path, parts.query, ""))
    timeout = httpx.Timeout(None, connect=CONNECT_S)
    sent = {**headers, "host": wanted.authority, "accept-encoding": "gzip, deflate"}
    try:
        async with httpx.AsyncClient(
            trust_env=False, timeout=timeout, follow_redirects=False
        ) as client:
            request = client.build_request(method, url, headers=sent, content=content)
            # The certificate must be the name's, not the address's.
            request.extensions["sni_hostname"] = wanted.host
            response = await client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
    except (httpx.HTTPError, httpx.InvalidURL, zlib.error) as error:
        raise CallFailed(f"{wanted.host} cannot be read: {type(error).__name__}") from error


async def read_body(response: "httpx.Response", limit: int) -> bytes:
    """The whole body, decoded, if it fits. Raises CallFailed as soon as it does not."""
    declared = response.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise CallFailed(_too_large(limit))
    decode = _decoder(response.headers.get("content-encoding", ""), limit)
    read = bytearray()
    raw = 0
    async for chunk in response.aiter_raw():
        raw += len(chunk)
        read += decode.decompress(chunk, limit + 1 - len(read)) if decode else chunk
        if len(read) > limit or raw > limit:
            raise CallFailed(_too_large(limit))
    return bytes(read)


def is_text(mime: str) -> bool:
    """Whether a type is one that can be read; what says nothing is taken for text."""
    if not mime or mime.startswith("text/"):
        return True
    last = mime.rpartition("/")[2]
    return mime.startswith("application/") and (
        last in {"json", "xml", "javascript", "ecmascript", "x-javascript", "yaml", "x-yaml"}
        or last.endswith(("+json", "+xml", "+yaml"))
    )


def _next(wanted: guard.Target, location: str, hops: int) -> guard.Target:
    if hops > HOPS_MAX:
        raise CallFailed(f"{wanted.host} redirects more than {HOPS_MAX} times")
    following = guard.parse_target(urljoin(wanted.url, location))
    if following.host.lower() != wanted.host.lower():
        raise CallFailed(
            f"The page redirects to another host. Fetch {following.url} itself if it is wanted."
        )
    if wanted.scheme == "https" and following.scheme == "http":
        raise CallFailed("The page redirects from https to http, which is not followed")
    return following


def _is_challenge(response: "httpx.Response") -> bool:
    refused = response.status_code == 403  # noqa: PLR2004
    return refused and response.headers.get("cf-mitigated") == "challenge"


def _kind(header: str) -> tuple[str, str | None]:
    mime, *parameters = (part.strip() for part in header.split(";"))
    named = (part.partition("=") for part in parameters)
    charset = next(
        (value.strip("\"' ") for name, _, value in named if name.strip().lower() == "charset"), None
    )
    return mime.lower(), charset


def _decoder(encoding: str, limit: int) -> "zlib._Decompress | None":
    said = encoding.strip().lower()
    if said in {"", "identity"}:
        return None
    if said not in {"gzip", "x-gzip", "deflate"}:
        raise CallFailed(f"The page is encoded as {said}, which nobody asked for")
    assert limit > 0
    return zlib.decompressobj(zlib.MAX_WBITS | 32)


def _too_large(limit: int) -> str:
    return f"Response too large (exceeds {limit} bytes)"
