"""Frames of the NATS protocol: a publish on its way out, and a message on its way in."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import nats.errors

_VERSION: Final = "NATS/1.0"
_STATUS_AT: Final = len(_VERSION) + 1
_NO_RESPONDERS: Final = b"NATS/1.0 503"
# A space or a line break in a subject or a header would begin another command.
_BAD_SUBJECT: Final = re.compile(r"[ \t\r\n]")
_HEADER_KEY: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LINE_BREAKS: Final = str.maketrans({"\r": " ", "\n": " "})
_PLAIN: Final = f"{_VERSION}\r\n"

STATUS: Final = "Status"
DESCRIPTION: Final = "Description"


class InboundMessage:
    """A message as it came. Its headers are parsed when somebody asks for them."""

    __slots__ = ("_headers", "_raw_headers", "data", "reply", "subject")

    def __init__(
        self, subject: str, reply: str = "", data: bytes = b"", raw_headers: bytes | None = None
    ) -> None:
        self.subject = subject
        self.reply = reply
        self.data = data
        self._raw_headers = raw_headers
        self._headers: dict[str, str] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers, with the status and its description if the server gave one."""
        if self._headers is None:
            raw = self._raw_headers
            self._headers = {} if raw is None else parse_headers(raw)
        return self._headers

    def find_header(self, name: str) -> str | None:
        """One header that the server itself added, without a look at the others.

        The server adds its headers behind those that were stored, so the last one counts.
        """
        raw = self._raw_headers
        if raw is None:
            return None
        mark = f"\r\n{name}: ".encode()
        start = raw.rfind(mark)
        if start < 0:
            return None
        start += len(mark)
        return raw[start : raw.find(b"\r\n", start)].decode()

    @property
    def is_status(self) -> bool:
        """Whether the server itself sent this, without a body, to say how it stands."""
        raw = self._raw_headers
        return raw is not None and not self.data and raw[_STATUS_AT - 1 : _STATUS_AT] == b" "

    @property
    def found_nobody(self) -> bool:
        """Whether the server sent this because nobody listens on the subject of a request."""
        raw = self._raw_headers
        return raw is not None and raw.startswith(_NO_RESPONDERS)


def encode_publish(
    subject: str, reply: str, body: bytes, headers: Mapping[str, str] | None, *, bytes_max: int
) -> bytes:
    """One publish as bytes. Raises BadSubjectError, BadHeaderError and MaxPayloadError."""
    if not subject or _BAD_SUBJECT.search(subject) or (reply and _BAD_SUBJECT.search(reply)):
        raise nats.errors.BadSubjectError
    size = len(body)
    if headers is None:
        if size > bytes_max:
            raise nats.errors.MaxPayloadError
        return b"%b%b\r\n" % (f"PUB {subject} {reply} {size}\r\n".encode(), body)
    block = encode_headers(headers)
    size += len(block)
    if size > bytes_max:  # The server counts the headers too, and ends the connection.
        raise nats.errors.MaxPayloadError
    head = f"HPUB {subject} {reply} {len(block)} {size}\r\n".encode()
    return b"%b%b%b\r\n" % (head, block, body)


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Headers as bytes; `Status` and `Description` become the status line. Raises BadHeaderError."""
    has_status = STATUS in headers or DESCRIPTION in headers
    block = _status_line(headers) if has_status else _PLAIN
    for key, value in headers.items():
        if key in {STATUS, DESCRIPTION}:
            continue
        if not _is_header_key(key):
            raise nats.errors.BadHeaderError(key)
        text = value.strip()
        block += f"{key}: {text if text.isprintable() else text.translate(_LINE_BREAKS)}\r\n"
    return f"{block}\r\n".encode()


def _status_line(headers: Mapping[str, str]) -> str:
    status = " ".join(headers[key] for key in (STATUS, DESCRIPTION) if headers.get(key))
    return f"{_VERSION} {status}".rstrip() + "\r\n"


@lru_cache(maxsize=256)
def _is_header_key(key: str) -> bool:
    """Whether a text may be the name of a header. Few names come again and again."""
    return _HEADER_KEY.fullmatch(key) is not None


def parse_headers(raw: bytes) -> dict[str, str]:
    """The headers of a message. A line that is no header is left out."""
    first, *lines = raw.decode("utf-8", "replace").split("\r\n")
    headers: dict[str, str] = {}
    status, _, description = first[_STATUS_AT:].strip().partition(" ")
    if status.isdigit():
        headers[STATUS] = status
        if description:
            headers[DESCRIPTION] = description
    for line in lines:
        key, colon, value = line.partition(":")
        if colon and _is_header_key(key := key.strip()):
            headers[key] = value.strip()
    return headers
