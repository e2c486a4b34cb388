"""Web pages for the context: bounded in time and size. The last good version is kept."""

import asyncio
import logging
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import uuid4

import httpx

from fairlead_schema.context import UnavailableKind
from fairlead_service.config.context import ContextConfig
from fairlead_service.supervise import cancel_and_wait
from fairlead_tools.context.sources.files import Unreadable, decode_text, expand_home
from fairlead_tools.private_directory import make_private

log = logging.getLogger(__name__)

# The pause after a failure when there is no earlier version.
RETRY_S: Final = 5.0
REDIRECTS_MAX: Final = 3


def cache_directory(settings: ContextConfig) -> Path:
    """The directory for downloads; a temporary one if the configured one cannot be made."""
    configured = expand_home(settings.cache)
    try:
        configured.mkdir(parents=True, exist_ok=True)
    except OSError:
        make_private(fallback_directory())
        return fallback_directory()
    return configured


def fallback_directory() -> Path:
    """The directory for downloads where the configured one cannot be made."""
    return Path(tempfile.gettempdir()) / f"fairlead-cache-{os.getuid()}"


class WebClient:
    """Fetches addresses that the configuration names."""

    def __init__(self, settings: ContextConfig) -> None:
        self._settings = settings
        self._client: httpx.AsyncClient | None = None

    async def get(self, url: str) -> bytes:
        """The body at an address. Raises Unreadable."""
        limit, timeout_s = self._settings.file_bytes_max, self._settings.fetch_timeout_s
        try:
            async with asyncio.timeout(timeout_s), self._follow(url) as answer:
                if answer.status_code != httpx.codes.OK:
                    why: UnavailableKind = "unreachable" if answer.is_server_error else "unreadable"
                    raise Unreadable(why, f"{url} answered {answer.status_code}")
                raw = bytearray()
                async for piece in answer.aiter_bytes():
                    raw += piece
                    if len(raw) > limit:
                        raise Unreadable("too-large", f"{url} has more than {limit} bytes")
                return bytes(raw)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise Unreadable("timeout", f"{url} did not answer in {timeout_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise Unreadable("unreachable", f"{url}: {reason}") from error

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    @asynccontextmanager
    async def _follow(self, url: str) -> AsyncIterator[httpx.Response]:
        """The answer of an address after its redirects. Raises Unreadable, httpx.HTTPError.

        The operator named this scheme, host and port. A redirect must not choose others.
        """
        client = self._open()
        request = client.build_request("GET", url)
        for _ in range(REDIRECTS_MAX + 1):
            answer = await client.send(request, stream=True)
            try:
                if answer.next_request is None:
                    yield answer
                    return
            finally:
                await answer.aclose()
            request = answer.next_request
            if _origin(request.url) != _origin(httpx.URL(url)):
                reason = f"{url} redirects to {request.url}: configure that address instead"
                raise Unreadable("unreadable", reason)
        raise Unreadable("unreadable", f"{url} redirects more than {REDIRECTS_MAX} times")

    def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(trust_env=False, follow_redirects=False)
        return self._client


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    """Scheme, host and port; the library drops the usual port of a scheme."""
    return (url.scheme, url.host, url.port)


@dataclass(slots=True)
class _Page:
    text: str | Unreadable
    at: float


class WebPages:
    """Texts of web pages. A known version is returned at once and renewed in the background."""

    def __init__(self, settings: ContextConfig, web: WebClient) -> None:
        self._settings = settings
        self._web = web
        self._pages: dict[str, _Page] = {}
        self._fetching: dict[str, asyncio.Task[str | Unreadable]] = {}

    async def texts(self, urls: tuple[str, ...]) -> dict[str, str | Unreadable]:
        """The text of each address, or why there is none."""
        if not urls:
            return {}
        return dict(zip(urls, await asyncio.gather(*map(self._text, urls)), strict=True))

    async def close(self) -> None:
        """Stop the downloads."""
        await cancel_and_wait(*self._fetching.values())

    async def _text(self, url: str) -> str | Unreadable:
        page = self._pages.get(url)
        if page is None:
            page = await asyncio.to_thread(self._load, url)
        if page is not None and time.monotonic() - page.at < self._fresh_s(page):
            return page.text
        task = self._fetching.get(url)
        if task is None:
            task = self._fetching[url] = asyncio.create_task(self._fetch(url))
            task.add_done_callback(lambda _done: self._fetching.pop(url, None))
        if page is not None and isinstance(page.text, str):
            return page.text
        return await asyncio.shield(task)

    def _fresh_s(self, page: _Page) -> float:
        return self._settings.refresh_s if isinstance(page.text, str) else RETRY_S

    async def _fetch(self, url: str) -> str | Unreadable:
        try:
            text: str | Unreadable = decode_text(await self._web.get(url), url)
        except Unreadable as error:
            log.warning(
                "web page not fetched: the last version stays",
                extra={"url": url, "reason": error.reason},
            )
            earlier = self._pages.get(url)
            text = earlier.text if earlier is not None else error
        else:
            await asyncio.to_thread(self._store, url, str(text))
        self._pages[url] = _Page(text, time.monotonic())
        return text

    def _path(self, url: str) -> Path:
        name = sha256(url.encode()).hexdigest()[:32]
        return cache_directory(self._settings) / "pages" / name

    def _load(self, url: str) -> _Page | None:
        """The version that an earlier process stored, used until a newer one arrives."""
        try:
            page = _Page(self._path(url).read_text(encoding="utf-8"), float("-inf"))
        except (OSError, ValueError):
            return None
        self._pages.setdefault(url, page)
        return page

    def _store(self, url: str, text: str) -> None:
        path = self._path(url)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = path.with_name(f"{path.name}.{uuid4().hex}")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)
        except OSError as error:
            log.warning(
                "web page not stored: a restart fetches it again",
                extra={"url": url, "reason": str(error)},
            )
