"""The kind of a file: how it can be shown to a model, and whether its bytes are what its type says."""

from typing import Final, Literal, TypeAlias

from fairlead_session.media.image_size import IMAGES, image_size

MediaKind: TypeAlias = Literal["text", "image", "pdf", "audio"]
"""How a file can be shown to a model. Files of other types cannot be shown."""

PIXELS_MAX: Final = 50_000_000
"""A decoded image of this many pixels takes about 200 MB."""
PDF: Final = "application/pdf"
_PDF_HEAD: Final = 1024
_TEXTS: Final = frozenset(
    f"application/{name}"
    for name in (
        *("json", "xml", "javascript", "ecmascript", "x-javascript", "yaml", "x-yaml", "toml"),
        *("sql", "x-sh", "graphql", "ld+json", "x-ndjson", "jsonl"),
    )
)
_AUDIO: Final = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/x-flac": "flac",
}
_SNIFFED_AUDIO: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"} | {
    name: f"audio/{name}" for name in ("ogg", "flac")
}


def media_kind(mime: str) -> MediaKind | None:
    """How a file of this type can be shown; None if it cannot."""
    if mime.startswith("text/") or mime in _TEXTS or mime.endswith(("+json", "+xml", "+yaml")):
        return "text"
    if mime in IMAGES:
        return "image"
    if mime == PDF:
        return "pdf"
    return "audio" if mime in _AUDIO else None


def sniff(content: bytes) -> str | None:
    """The media type that the first bytes show; None for text and for unknown files."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    if b"%PDF-" in content[:_PDF_HEAD]:
        return PDF
    audio = _audio_format(content)
    return None if audio is None else _SNIFFED_AUDIO[audio]


def find_lie(mime: str, content: bytes, charset: str | None = None) -> str | None:
    """Why the bytes cannot be shown as a file of this type; None if they can, or never will be.

    A provider refuses a request with such a file, and the file would stay in the history.
    """
    kind = media_kind(mime)
    if kind is None:
        return None
    if not content:
        return None if kind == "text" else f"it is empty, and no {mime}"
    match kind:
        case "image":
            return _image_lie(mime, content)
        case "pdf":
            whole = b"%PDF-" in content[:_PDF_HEAD] and b"%%EOF" in content
            return None if whole else _lie(mime, content)
        case "audio":
            return None if _audio_format(content) == _AUDIO[mime] else _lie(mime, content)
        case "text":
            return _text_lie(content, charset)


def decode_text(content: bytes, charset: str | None = None) -> str:
    """Text for a model. Bytes that are no character become replacement characters."""
    try:
        return content.decode(charset or "utf-8", errors="replace").removeprefix("\ufeff")
    except LookupError:
        return content.decode("utf-8", errors="replace").removeprefix("\ufeff")


def _image_lie(mime: str, content: bytes) -> str | None:
    size = image_size(mime, content)
    if size is None:
        return _lie(mime, content)
    if size.width * size.height > PIXELS_MAX:
        return (
            f"the image has {size.width}x{size.height} pixels, and at most {PIXELS_MAX} are shown"
        )
    return None


def _text_lie(content: bytes, charset: str | None) -> str | None:
    name = charset or "utf-8"
    try:
        text = content.decode(name)
    except LookupError:
        return f"the character set {name[:40]} is not known"
    except (UnicodeDecodeError, ValueError):
        return f"its bytes are no text in {name[:40]}"
    return "its bytes hold a NUL, so they are no text" if "\0" in text else None


def _lie(mime: str, content: bytes) -> str:
    found = sniff(content)
    if found is None or found == mime:
        return f"its bytes are no whole {mime}"
    return f"it is declared {mime} and its bytes are {found}"


def _audio_format(content: bytes) -> str | None:
    if content.startswith(b"RIFF") and content[8:12] == b"WAVE":
        return "wav"
    if content.startswith(b"OggS"):
        return "ogg"
    if content.startswith(b"fLaC"):
        return "flac"
    is_frame = len(content) > 1 and content[0] == 0xFF and content[1] & 0xE6 == 0xE2  # noqa: PLR2004
    return "mp3" if content.startswith(b"ID3") or is_frame else None
