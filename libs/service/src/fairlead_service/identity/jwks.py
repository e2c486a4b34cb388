"""The public keys of an issuer, from a file or a configured URL. A token never names its own keys."""

import asyncio
import logging
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from typing import Any, Final, Protocol

import jwt
from pydantic_core import from_json
from typing_extensions import override

from fairlead_service.identity.watched_file import WatchedFile

log = logging.getLogger(__name__)

KEYS_MAX: Final = 64
DOCUMENT_BYTES_MAX: Final = 256 * 1024
REFRESH_S: Final = 600.0
"""How long the keys of a URL count before they are fetched again."""
RETRY_S: Final = 30.0
"""An unknown key id fetches the keys again, but not more often than this."""
FETCH_TIMEOUT_S: Final = 5.0


class KeySet:
    """The keys of one version of a JWKS document."""

    def __init__(self, keys: dict[str, jwt.PyJWK], unnamed: tuple[jwt.PyJWK, ...] = ()) -> None:
        self._keys = keys
        self._all = (*keys.values(), *unnamed)

    def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """The key with an id. A token without an id fits a set of exactly one key."""
        if key_id is None:
            return self._all[0] if len(self._all) == 1 else None
        return self._keys.get(key_id)


class KeySource(Protocol):
    """Where the verifier gets the keys of the issuer."""

    def current(self) -> KeySet:
        """The keys that count now."""

    async def refresh(self) -> None:
        """Look for newer keys, if it is time for that."""


def parse_key_set(text: str | bytes) -> KeySet:
    """Read a JWKS document. Raises ValueError.

    Keys that sign nothing, are symmetric or cannot be read are left out: the others still count.
    """
    document = from_json(text)
    items = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise ValueError("a JWKS document has a list `keys`")  # noqa: TRY004 - the text is wrong
    if len(items) > KEYS_MAX:
        raise ValueError(f"more than {KEYS_MAX} keys")
    named: dict[str, jwt.PyJWK] = {}
    unnamed: list[jwt.PyJWK] = []
    for item in items:
        if not _is_usable(item):
            continue
        try:
            key = jwt.PyJWK(item)
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            # The text of the error may hold the key. An issuer may have kinds that we do not know.
            log.warning(
                "key of the issuer cannot be read: tokens that it signed are refused",
                extra={"kid": item.get("kid"), "reason": type(error).__name__},
            )
            continue
        if key.key_id is None:
            unnamed.append(key)
        else:
            named[key.key_id] = key
    if items and not named and not unnamed:
        raise ValueError("no key of the document can be used")
    return KeySet(named, tuple(unnamed))


def _is_usable(item: Any) -> bool:  # noqa: ANN401 - JSON of any shape
    if not isinstance(item, dict) or not isinstance(item.get("kid", ""), str):
        return False
    return item.get("kty") in ("RSA", "EC", "OKP") and item.get("use", "sig") == "sig"


class JwksFile(KeySource):
    """Keys from a file that is read again when it changes."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises FileUnusable."""
        self._file = WatchedFile(path, parse_key_set)

    @override
    def current(self) -> KeySet:
        return self._file.current()

    @override
    async def refresh(self) -> None:
        """The file is checked with every request already."""


class JwksUrl(KeySource):
    """Keys from a configured URL. While the URL is away, the last keys stay in force."""

    def __init__(self, url: str, *, clock: Callable[[], float] = monotonic) -> None:
        self._url = url
        self._clock = clock
        self._keys = KeySet({})
        self._fetched_at = float("-inf")
        self._lock = asyncio.Lock()

    @override
    def current(self) -> KeySet:
        return self._keys

    def is_old(self) -> bool:
        """Whether the keys should be fetched again."""
        return self._clock() - self._fetched_at >= REFRESH_S

    @override
    async def refresh(self) -> None:
        async with self._lock:
            if self._clock() - self._fetched_at < RETRY_S:
                return
            self._fetched_at = self._clock()
            try:
                # The timeout of a socket begins again with every byte.
                async with asyncio.timeout(FETCH_TIMEOUT_S):
                    text = await asyncio.to_thread(_fetch, self._url)
                self._keys = parse_key_set(text)
            except (OSError, ValueError, HTTPException) as error:
                log.warning(
                    "keys of the issuer not fetched: the old keys stay in force",
                    extra={"url": self._url, "reason": str(error) or type(error).__name__},
                )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: only the configured URL is trusted."""

    @override
    def redirect_request(self, *_args: object) -> None:
        return None


def _fetch(url: str) -> bytes:
    opener = urllib.request.build_opener(_NoRedirect)
    # The configuration allows https, and http on this machine, and nothing else.
    with opener.open(url, timeout=FETCH_TIMEOUT_S) as response:
        text: bytes = response.read(DOCUMENT_BYTES_MAX + 1)
    if len(text) > DOCUMENT_BYTES_MAX:
        raise ValueError(f"the document exceeds {DOCUMENT_BYTES_MAX} bytes")
    return text
