"""The kind of a file, by its first bytes and its name."""

import mimetypes
from pathlib import PurePath
from typing import Final

HEAD: Final = 16

_BINARY: Final = frozenset(
    {
        *(".7z", ".bz2", ".dmg", ".gz", ".iso", ".jar", ".rar", ".tar", ".tgz", ".war", ".xz"),
        *(".a", ".bin", ".class", ".dat", ".dll", ".dylib", ".exe", ".lib", ".o", ".obj", ".pyc"),
        *(".avi", ".flac", ".mkv", ".mov", ".mp3", ".mp4", ".ogg", ".wav", ".webm"),
        *(".bmp", ".ico", ".tif", ".tiff", ".eot", ".otf", ".ttf", ".woff", ".woff2"),
        *(".doc", ".docx", ".odp", ".ods", ".odt", ".pdf", ".ppt", ".pptx", ".xls", ".xlsx"),
        *(".pyo", ".so", ".sqlite", ".wasm", ".zip", ".zst"),
    }
)
_TEXT: Final = frozenset(
    {
        *("application/json", "application/xml", "application/javascript", "application/toml"),
        *("application/x-sh", "application/sql", "application/yaml", "image/svg+xml"),
    }
)


def image_type(head: bytes) -> str | None:
    """The media type of an image that models accept, by its first bytes; None for other files."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def is_binary(name: str, head: bytes) -> bool:
    """Whether the name or the first bytes show that the file is not text."""
    return PurePath(name).suffix.lower() in _BINARY or head.startswith(b"%PDF-")


def text_type(name: str) -> str:
    """The media type of a text file."""
    mime = mimetypes.guess_type(name)[0] or ""
    return mime if mime.startswith("text/") or mime in _TEXT else "text/plain"
