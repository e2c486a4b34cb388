"""Files in a request: inline data is sent, every other file becomes a note for the model.

History is never rewritten, so a file that a provider refuses would fail every later turn. Therefore
a reference to another place, or data that cannot be read, becomes a note.
"""

import base64
import binascii
from typing import Final
from urllib.parse import unquote_to_bytes

from fairlead_schema.provider.request import MediaPart, TextPart

URI_SHOWN_MAX: Final = 500
_SCHEME: Final = "data:"


def file_part(uri: str, mime: str, name: str | None) -> MediaPart | TextPart:
    """A file as a part of a turn. Inline data gets the one form that providers accept."""
    kind = mime.partition(";")[0].partition(",")[0].strip()
    if uri[: len(_SCHEME)].lower() != _SCHEME:
        return TextPart(_note(name, kind, f" It is at {uri[:URI_SHOWN_MAX]}; its content"))
    head, comma, encoded = uri[len(_SCHEME) :].partition(",")
    declared, *parameters = head.split(";")
    canonical = _canonical(encoded, is_base64="base64" in parameters) if comma else None
    if canonical is None:
        return TextPart(_note(name, kind, " Its data cannot be read and"))
    is_canonical = uri.startswith(_SCHEME) and "base64" in parameters
    if is_canonical and declared == kind and canonical == encoded:
        return MediaPart(uri, kind, name)
    return MediaPart(f"{_SCHEME}{kind};base64,{canonical}", kind, name)


def _note(name: str | None, mime: str, why: str) -> str:
    return f"[Attached file {name or 'without a name'} ({mime}).{why} is not part of this message.]"


def _canonical(encoded: str, *, is_base64: bool) -> str | None:
    """The data as canonical base64. None if the data is not base64."""
    if not is_base64:
        return base64.b64encode(unquote_to_bytes(encoded)).decode()
    # The URL-safe alphabet, line breaks and missing padding are common and mean the same data.
    plain = "".join(encoded.split()).rstrip("=").translate(_FROM_URL_SAFE)
    try:
        decoded = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return base64.b64encode(decoded).decode()


_FROM_URL_SAFE: Final = str.maketrans("-_", "+/")
