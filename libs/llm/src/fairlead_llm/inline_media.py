"""Inline media: a data URI, checked against the limits of providers (O-16, O-17)."""

import base64
import binascii
from dataclasses import dataclass

from fairlead_llm.errors import UnsendableRequest
from fairlead_schema.provider.request import MediaPart

DECODED_BYTES_MAX = 20 * 1024 * 1024
ENCODED_BYTES_MAX = 28 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class InlineMedia:
    """Media that is ready to send. `encoded` is the canonical base64 of `decoded`."""

    mime: str
    encoded: str
    decoded: bytes

    @property
    def uri(self) -> str:
        return f"data:{self.mime};base64,{self.encoded}"


def inline_media(part: MediaPart) -> InlineMedia:
    """The media of a data URI. Raises UnsendableRequest for a wrong URI, type or size."""
    head, comma, encoded = part.uri.partition(",")
    if not head.startswith("data:") or not comma:
        raise UnsendableRequest(f"Media {_name(part)} is not inline: its URI is no data URI")
    declared, *parameters = head.removeprefix("data:").split(";")
    if "base64" not in parameters:
        raise UnsendableRequest(f"Media {_name(part)} is not base64")
    if declared.lower() != part.mime.lower():
        raise UnsendableRequest(f"Media {_name(part)} is declared {part.mime} but holds {declared}")
    if len(encoded) > ENCODED_BYTES_MAX:
        raise UnsendableRequest(
            f"Media {_name(part)} is larger than {ENCODED_BYTES_MAX} encoded bytes"
        )
    decoded = _decode(encoded, part)
    if len(decoded) > DECODED_BYTES_MAX:
        raise UnsendableRequest(f"Media {_name(part)} is larger than {DECODED_BYTES_MAX} bytes")
    return InlineMedia(part.mime.lower(), encoded, decoded)


def _decode(encoded: str, part: MediaPart) -> bytes:
    try:
        decoded = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnsendableRequest(f"Media {_name(part)} is not valid base64") from error
    if base64.b64encode(decoded).decode() != encoded:
        raise UnsendableRequest(f"Media {_name(part)} is not canonical base64")
    return decoded


def _name(part: MediaPart) -> str:
    return part.name or part.mime
