"""Attachments of a prompt in a request: text under its name, media as media, the rest as notes.

Content that is stored stays a reference here. The runner puts the bytes in its place when the
request leaves, so neither the log nor the folded session ever holds them.
"""

from typing import Final

from fairlead_schema.attachments.reference import attachment_id
from fairlead_schema.prompt import AttachedContent, PromptFile
from fairlead_schema.provider.request import MediaPart, TextPart, Turn, UserTurn
from fairlead_session.media.data_uri import is_data_uri, parse_data_uri
from fairlead_session.media.file_part import file_note, file_part, plain_type
from fairlead_session.media.kind import decode_text, find_lie, media_kind

TEXT_BYTES_MAX: Final = 256 * 1024
"""A stored text is shown up to this length."""
IMAGE_UNITS: Final = 6_400
"""An image counts about 1,600 tokens, whatever its size."""
PDF_UNITS_MAX: Final = 400_000
_NOT_SHOWN: Final = " A file of this type cannot be shown to a model."

Parts = tuple[TextPart | MediaPart, ...]


def attachment_parts(file: PromptFile) -> Parts:
    """An attachment as parts of a user turn."""
    if file.content is not None:
        return _taken_parts(file, file.content)
    if not is_data_uri(file.uri):
        return (file_part(file.uri, file.mime, file.name),)
    return _data_parts(file)


def named_text(name: str | None, mime: str, text: str) -> TextPart:
    """A text file with its name around it."""
    shown = name or "without a name"
    return TextPart(f"[Attached file {shown} ({mime}):]\n{text}\n[End of {name or 'the file'}]")


def stored_text(part: MediaPart, content: bytes) -> TextPart:
    """The content of a stored text, cut where it is too long."""
    text = decode_text(content[:TEXT_BYTES_MAX])
    if len(content) > TEXT_BYTES_MAX:
        text += f"\n[Cut here: {TEXT_BYTES_MAX} of {len(content)} bytes are shown]"
    return named_text(part.name, part.mime, text)


def stored_units(turn: Turn) -> int:
    """What the stored attachments of a turn add to its length, as the estimate of tokens counts it."""
    parts = turn.content if isinstance(turn, UserTurn) else ()
    media = (part for part in parts if isinstance(part, MediaPart) and attachment_id(part.uri))
    return sum(_units(part) for part in media)


def _units(part: MediaPart) -> int:
    match media_kind(part.mime):
        case "text":
            return min(part.bytes, TEXT_BYTES_MAX)
        case "image":
            return IMAGE_UNITS
        case "pdf":
            return min(part.bytes // 4, PDF_UNITS_MAX)
        case _:
            return part.bytes // 8


def missing_part(part: MediaPart) -> TextPart:
    """The note in the place of an attachment that is not stored any more."""
    return TextPart(file_note(part.name, part.mime, " It is not stored any more."))


def untaken_part(part: MediaPart) -> TextPart:
    """The note in the place of a file that the model cannot take."""
    return TextPart(file_note(part.name, part.mime, " This model takes no such file."))


def left_out_part(part: MediaPart) -> TextPart:
    """The note in the place of a file for which a request has no room."""
    return TextPart(
        file_note(part.name, part.mime, " It is left out: newer files fill the request.")
    )


def _taken_parts(file: PromptFile, content: AttachedContent) -> Parts:
    """Content that was taken, with the note on it."""
    mime = plain_type(content.mime)
    if content.text is not None:
        shown: Parts = (named_text(file.name or file.uri, mime, content.text),)
    elif content.uri is None:
        return (TextPart(file_note(file.name or file.uri, mime, f" {content.note or ''}")),)
    elif media_kind(mime) is None:
        shown = (TextPart(file_note(file.name, mime, _NOT_SHOWN)),)
    elif attachment_id(content.uri) is not None:
        shown = (MediaPart(content.uri, mime, file.name, content.bytes or 0),)
    else:
        shown = (file_part(content.uri, mime, file.name),)
    return shown if content.note is None else (*shown, TextPart(f"[{content.note}]"))


def _data_parts(file: PromptFile) -> Parts:
    """Inline data. Logs of earlier releases hold data that is not what its type says."""
    parsed, mime = parse_data_uri(file.uri), plain_type(file.mime)
    kind = media_kind(mime)
    if parsed is None or kind is None:
        part = file_part(file.uri, file.mime, file.name)
        unreadable = isinstance(part, TextPart)
        return (part if unreadable else TextPart(file_note(file.name, mime, _NOT_SHOWN)),)
    if kind == "text":
        return (named_text(file.name, mime, decode_text(parsed.content, parsed.charset)),)
    lie = find_lie(mime, parsed.content)
    if lie is not None:
        return (TextPart(file_note(file.name, mime, f" It is not shown: {lie}.")),)
    return (file_part(file.uri, file.mime, file.name),)
