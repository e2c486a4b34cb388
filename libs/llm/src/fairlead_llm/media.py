"""Inline media: a data URI checked against what providers accept (O-16, O-17)."""

import base64
import binascii
from dataclasses import dataclass

from fairlead_llm.errors import Unsendable
from fairlead_schema.provider.request import MediaPart

DECODED_BYTES_MAX = 20 * 1024 * 1024
ENCODED_BYTES_MAX = 28 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Inline:
    """Media ready to send: `encoded` is canonical base64 of `decoded`."""

    mime: str
    encoded: str
    decoded: bytes

    @property
    def uri(self) -> str:
        return f"data:{self.mime};base64,{self.encoded}"


def inline(part: MediaPart) -> Inline:
    """The media of a data URI. Raises Unsendable when it is no such, too large, or mislabelled."""
    head, comma, encoded = part.uri.partition(",")
    if not head.startswith("data:") or not comma:
        raise Unsendable(f"Media {_name(part)} is not inline: its URI is no data URI")
    declared, *parameters = head.removeprefix("data:").split(";")
    if "base64" not in parameters:
        raise Unsendable(f"Media {_name(part)} is not base64")
    if declared.lower() != part.mime.lower():
        raise Unsendable(f"Media {_name(part)} is declared {part.mime} but holds {declared}")
    if len(encoded) > ENCODED_BYTES_MAX:
        raise Unsendable(f"Media {_name(part)} is larger than {ENCODED_BYTES_MAX} encoded bytes")
    decoded = _decoded(encoded, part)
    if len(decoded) > DECODED_BYTES_MAX:
        raise Unsendable(f"Media {_name(part)} is larger than {DECODED_BYTES_MAX} bytes")
    return Inline(part.mime.lower(), encoded, decoded)


def _decoded(encoded: str, part: MediaPart) -> bytes:
    try:
        decoded = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unsendable(f"Media {_name(part)} is not valid base64") from error
    if base64.b64encode(decoded).decode() != encoded:
        raise Unsendable(f"Media {_name(part)} is not canonical base64")
    return decoded


def _name(part: MediaPart) -> str:
    return part.name or part.mime
