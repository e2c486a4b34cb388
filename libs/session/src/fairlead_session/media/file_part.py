"""Files in a request: inline data is sent, every other file becomes a note for the model.

History is never rewritten, so a file that a provider refuses would fail every later turn. Therefore
a reference to another place, or data that cannot be read, becomes a note.
"""

from typing import Final

from fairlead_schema.provider.request import MediaPart, TextPart
from fairlead_session.media.data_uri import SCHEME, data_uri, is_data_uri, parse_data_uri

URI_SHOWN_MAX: Final = 500


def file_part(uri: str, mime: str, name: str | None) -> MediaPart | TextPart:
    """A file as a part of a turn. Inline data gets the one form that providers accept."""
    kind = plain_type(mime)
    if not is_data_uri(uri):
        where = f" It is at {uri[:URI_SHOWN_MAX]}; its content is not part of this message."
        return TextPart(file_note(name, kind, where))
    parsed = parse_data_uri(uri)
    if parsed is None:
        why = " Its data cannot be read and is not part of this message."
        return TextPart(file_note(name, kind, why))
    canonical = data_uri(kind, parsed.content)
    is_canonical = uri.startswith(SCHEME) and "base64" in parsed.parameters
    if is_canonical and parsed.declared == kind and canonical.endswith(f",{parsed.encoded}"):
        return MediaPart(uri, kind, name)
    return MediaPart(canonical, kind, name)


def plain_type(mime: str) -> str:
    """A media type without its parameters."""
    return mime.partition(";")[0].partition(",")[0].strip()


def file_note(name: str | None, mime: str, why: str) -> str:
    """A text in the place of a file."""
    return f"[Attached file {name or 'without a name'} ({mime}).{why}]"
