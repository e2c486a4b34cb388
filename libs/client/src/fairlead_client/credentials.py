"""Where the token of the caller comes from, and when it is read again."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from fairlead_client.errors import TokenUnavailable

TokenSource: TypeAlias = str | Path | Callable[[], str | Awaitable[str]]
"""A token, a file that holds it, or a function that fetches it. A `str` is always the token itself.

A function that takes long must be `async` for `AsyncFairlead`: everything waits for another one.
"""

TokenReader: TypeAlias = Callable[[], str | Awaitable[str]]
"""Gives the token now."""


class FileToken:
    """A token in a file. The file is read again when it changed: somebody may renew it at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: tuple[int, int, int] | None = None
        self._token = ""

    def __call__(self) -> str:
        """The token that the file holds now. Raises TokenUnavailable."""
        try:
            about = self._path.stat()
            version = (about.st_mtime_ns, about.st_size, about.st_ino)
            if version != self._read_at:
                self._token, self._read_at = self._path.read_text().strip(), version
        except (OSError, UnicodeDecodeError) as error:
            raise TokenUnavailable(str(self._path), str(error)) from error
        if not self._token:
            raise TokenUnavailable(str(self._path), "the file is empty")
        return self._token


def clean_token(token: str, source: str = "its source") -> str:
    """A token without the end of its line. Raises TokenUnavailable if no request can carry it."""
    cleaned = token.strip()
    if not (cleaned.isascii() and cleaned.isprintable()) or " " in cleaned:
        reason = "it has characters that no token has: copy it again"
        raise TokenUnavailable(source, reason)
    return cleaned


def check_token(token: object, source: str) -> str:
    """A token as a source gave it. Raises TokenUnavailable for anything that is none."""
    if not isinstance(token, str):
        raise TokenUnavailable(source, f"it gave a {type(token).__name__}, and no text")
    cleaned = clean_token(token, source)
    if not cleaned:
        raise TokenUnavailable(source, "it gave an empty text")
    return cleaned


def source_name(source: TokenSource | None) -> str:
    """What an error calls a source. A token itself is not shown."""
    match source:
        case None | str():
            return "its source"
        case Path():
            return str(source)
        case _:
            return f"the function {getattr(source, '__qualname__', type(source).__qualname__)}"


def token_reader(source: TokenSource | None) -> TokenReader | None:
    """A function that gives the token now; None if the caller has none."""
    match source:
        case None:
            return None
        case str():
            return lambda: source
        case Path():
            return FileToken(source)
        case _:
            return source
