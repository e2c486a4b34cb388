"""Fetches one page: checks the address of every redirect and bounds the body as it arrives."""

import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from fairlead_service.web import guard, pinned_request
from fairlead_tools.registry.tool import CallFailed

if TYPE_CHECKING:
    import httpx

BODY_BYTES_MAX: Final = 5 * 1024 * 1024
HOPS_MAX: Final = 5
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# The plain name is sent to a page that takes the first one for a disguised browser.
AGENT: Final = "Mozilla/5.0 (compatible; fairlead/1.0)"
PLAIN_AGENT: Final = "fairlead"
ACCEPT: Final = {
    "markdown": "text/markdown;q=1.0, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1",
    "text": "text/plain;q=1.0, text/html;q=0.8, */*;q=0.1",
    "html": "text/html;q=1.0, application/xhtml+xml;q=0.9, */*;q=0.1",
}


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as the server sent it."""

    url: str
    mime: str
    charset: str | None
    body: bytes


async def fetch(
    url: str,
    accept: str,
    *,
    private: bool,
    limit: int = BODY_BYTES_MAX,
    texts_only: bool = True,
) -> WebPage:
    """Fetch a URL and follow its redirects within its origin. Raises CallFailed."""
    target, agent = parse_target(url), AGENT
    hops = 0
    while True:
        headers = {"accept": accept, "user-agent": agent}
        async with open_request("GET", target, headers, private=private) as response:
            if response.status_code in REDIRECTS and "location" in response.headers:
                hops += 1
                target = _next(target, response.headers["location"], hops)
                continue
            if _is_challenge(response) and agent == AGENT:
                agent = PLAIN_AGENT
                continue
            if not response.is_success:
                raise CallFailed(f"{target.url} answered with status {response.status_code}")
            mime, charset = _kind(response.headers.get("content-type", ""))
            if texts_only and not is_text(mime):
                raise CallFailed(f"{target.url} is {mime or 'of no known type'}, not text")
            return WebPage(target.url, mime, charset, await read_body(response, limit))


@asynccontextmanager
async def open_request(
    method: str,
    target: guard.Target,
    headers: Mapping[str, str],
    *,
    private: bool,
    content: bytes | None = None,
) -> AsyncIterator["httpx.Response"]:
    """Send a request to the checked address. The body is still unread. Raises CallFailed."""
    try:
        async with pinned_request.open_request(
            method, target, headers, private=private, content=content
        ) as response:
            yield response
    except (guard.AddressRefused, pinned_request.RequestFailed) as error:
        raise CallFailed(str(error)) from error


def parse_target(url: str) -> guard.Target:
    """Parse and check a URL. Raises CallFailed."""
    try:
        return guard.parse_target(url)
    except guard.AddressRefused as error:
        raise CallFailed(str(error)) from error


async def read_body(response: "httpx.Response", limit: int) -> bytes:
    """The whole decoded body. Raises CallFailed as soon as it exceeds the limit."""
    declared = response.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise CallFailed(_too_large(limit))
    decode = _decoder(response.headers.get("content-encoding", ""), limit)
    text = bytearray()
    raw = 0
    async for chunk in response.aiter_raw():
        raw += len(chunk)
        text += decode.decompress(chunk, limit + 1 - len(text)) if decode else chunk
        if len(text) > limit or raw > limit:
            raise CallFailed(_too_large(limit))
    return bytes(text)


def is_text(mime: str) -> bool:
    """Whether a media type is text. A missing type counts as text."""
    if not mime or mime.startswith("text/"):
        return True
    last = mime.rpartition("/")[2]
    return mime.startswith("application/") and (
        last in {"json", "xml", "javascript", "ecmascript", "x-javascript", "yaml", "x-yaml"}
        or last.endswith(("+json", "+xml", "+yaml"))
    )


def _next(target: guard.Target, location: str, hops: int) -> guard.Target:
    if hops > HOPS_MAX:
        raise CallFailed(f"{target.host} redirects more than {HOPS_MAX} times")
    redirect = parse_target(urljoin(target.url, location))
    if redirect.origin != target.origin:
        # The permission was for this origin. Another one is judged by itself.
        raise CallFailed(
            "The page redirects to another scheme, host or port. "
            f"Fetch {redirect.url} itself if you want it."
        )
    return redirect


def _is_challenge(response: "httpx.Response") -> bool:
    refused = response.status_code == 403  # noqa: PLR2004
    return refused and response.headers.get("cf-mitigated") == "challenge"


def _kind(header: str) -> tuple[str, str | None]:
    mime, *parameters = (part.strip() for part in header.split(";"))
    pairs = (part.partition("=") for part in parameters)
    charset = next(
        (value.strip("\"' ") for name, _, value in pairs if name.strip().lower() == "charset"), None
    )
    return mime.lower(), charset


def _decoder(encoding: str, limit: int) -> "zlib._Decompress | None":
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return None
    if name not in {"gzip", "x-gzip", "deflate"}:
        raise CallFailed(f"The page is encoded as {name}, which was not requested")
    assert limit > 0
    return zlib.decompressobj(zlib.MAX_WBITS | 32)


def _too_large(limit: int) -> str:
    return f"Response too large (exceeds {limit} bytes)"
