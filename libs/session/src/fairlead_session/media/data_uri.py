"""Data URIs: the bytes inside one, and the form that providers accept."""

import base64
import binascii
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

SCHEME: Final = "data:"
_FROM_URL_SAFE: Final = str.maketrans("-_", "+/")


@dataclass(frozen=True, slots=True)
class DataUri:
    """The parts of a data URI."""

    declared: str
    parameters: tuple[str, ...]
    encoded: str
    content: bytes

    @property
    def charset(self) -> str | None:
        """The character set that the URI names."""
        pairs = (part.strip().partition("=") for part in self.parameters)
        return next((value for name, _, value in pairs if name.lower() == "charset"), None)


def is_data_uri(uri: str) -> bool:
    """Whether a URI holds its data. The scheme may be in capitals."""
    return uri[: len(SCHEME)].lower() == SCHEME


def parse_data_uri(uri: str) -> DataUri | None:
    """The parts of a data URI; None if its data cannot be read."""
    head, comma, encoded = uri[len(SCHEME) :].partition(",")
    if not is_data_uri(uri) or not comma:
        return None
    declared, *parameters = head.split(";")
    content = _decode(encoded) if "base64" in parameters else unquote_to_bytes(encoded)
    if content is None:
        return None
    return DataUri(declared.strip(), tuple(parameters), encoded, content)


def data_uri(mime: str, content: bytes) -> str:
    """Content in the one form that providers accept: canonical base64 under a plain type."""
    return f"{SCHEME}{mime};base64,{base64.b64encode(content).decode()}"


def _decode(encoded: str) -> bytes | None:
    # The URL-safe alphabet, line breaks and missing padding are common and mean the same data.
    plain = "".join(encoded.split()).rstrip("=").translate(_FROM_URL_SAFE)
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
