"""Content that was read for an attachment, before it is stored."""

from dataclasses import dataclass

from fairlead_session.input.attachment import detect_type
from fairlead_session.media.kind import decode_text, find_lie, media_kind
from fairlead_tools.files.image import ImageLimits, ImageRefused
from fairlead_tools.files.image_process import fit_image_in_child
from fairlead_tools.files.pages import PAGE_BYTES_MAX


class NotTaken(Exception):
    """Content that cannot be shown. The message is a sentence for the model."""


@dataclass(frozen=True, slots=True)
class RawContent:
    """The bytes of a file, with the name or the type that says what they are."""

    data: bytes
    name: str
    mime: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ReadyContent:
    """Content in the form that a model is shown: a text, or media that fits."""

    mime: str
    data: bytes
    text: str | None = None
    note: str | None = None


async def prepare_content(raw: RawContent, limits: ImageLimits) -> ReadyContent:
    """Tell what the bytes are, and fit them for a model. Raises NotTaken."""
    mime = raw.mime if raw.mime and media_kind(raw.mime) else detect_type(raw.data, raw.name)
    if media_kind(mime) is not None and find_lie(mime, raw.data) is not None:
        mime = detect_type(raw.data, None)
    kind = media_kind(mime)
    if kind is None:
        raise NotTaken(f"A file of the type {mime} cannot be shown to a model.")
    if kind == "text":
        return _cut_text(mime, raw)
    lie = find_lie(mime, raw.data)
    if lie is not None:
        raise NotTaken(f"It cannot be shown: {lie}.")
    if kind != "image":
        return ReadyContent(mime, raw.data, note=raw.note)
    try:
        image = await fit_image_in_child(raw.data, mime, limits)
    except ImageRefused as error:
        raise NotTaken(f"{error}.") from error
    return ReadyContent(image.mime, image.decoded, note=raw.note)


def _cut_text(mime: str, raw: RawContent) -> ReadyContent:
    text, note = decode_text(raw.data[:PAGE_BYTES_MAX]), raw.note
    if len(raw.data) > PAGE_BYTES_MAX:
        text = text.rstrip("\ufffd")
        note = f"Only the first {PAGE_BYTES_MAX} of {len(raw.data)} bytes are shown"
    return ReadyContent(mime, text.encode(), text, note)
