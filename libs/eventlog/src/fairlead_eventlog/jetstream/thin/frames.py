"""Frames of the NATS protocol: a publish on its way out, and a message on its way in."""

import re
from collections.abc import Mapping
from typing import Final

import nats.errors

_VERSION: Final = "NATS/1.0"
_STATUS_AT: Final = len(_VERSION) + 1
_NO_RESPONDERS: Final = b"NATS/1.0 503"
# A space or a line break in a subject or a header would begin another command.
_BAD_SUBJECT: Final = re.compile(r"[ \t\r\n]")
_HEADER_KEY: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LINE_BREAKS: Final = str.maketrans({"\r": " ", "\n": " "})

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
    status = " ".join(headers[key] for key in (STATUS, DESCRIPTION) if headers.get(key))
    lines = [f"{_VERSION} {status}".rstrip()]
    for key, value in headers.items():
        if key in {STATUS, DESCRIPTION}:
            continue
        if not _HEADER_KEY.fullmatch(key):
            raise nats.errors.BadHeaderError(key)
        lines.append(f"{key}: {value.strip().translate(_LINE_BREAKS)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


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
        if colon and _HEADER_KEY.fullmatch(key := key.strip()):
            headers[key] = value.strip()
    return headers
