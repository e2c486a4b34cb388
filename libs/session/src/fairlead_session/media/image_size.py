"""The size of an image in pixels, read from its header: nothing is decoded.

The structure around the pixels is walked to its end, so an image that was cut off is no image.
"""

import struct
import zlib
from typing import Final, NamedTuple

PNG: Final = b"\x89PNG\r\n\x1a\n"
_END_OF_JPEG: Final = b"\xff\xd9"
# The frames that name a size: all but the tables and the reserved ones between them.
_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD8)})


class ImageSize(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


def image_size(mime: str, content: bytes) -> ImageSize | None:
    """The size of a whole image of this type; None if the bytes are no such image."""
    try:
        size = _READERS[mime](content)
    except (struct.error, IndexError):
        return None
    return size if size is not None and size.width > 0 and size.height > 0 else None


def _png(content: bytes) -> ImageSize | None:
    if not content.startswith(PNG) or content[12:16] != b"IHDR":
        return None
    at = len(PNG)
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind, end = content[at + 4 : at + 8], at + 12 + length
        (stored,) = struct.unpack_from(">I", content, end - 4)
        if zlib.crc32(memoryview(content)[at + 4 : end - 4]) != stored:
            return None
        if kind == b"IEND":
            return ImageSize(*struct.unpack_from(">II", content, 16))
        at = end
    return None


def _gif(content: bytes) -> ImageSize | None:
    whole = content.startswith((b"GIF87a", b"GIF89a")) and content.rstrip(b"\0").endswith(b";")
    return ImageSize(*struct.unpack_from("<HH", content, 6)) if whole else None


def _jpeg(content: bytes) -> ImageSize | None:
    at = 2
    while content.startswith(b"\xff\xd8") and content[at] == 0xFF:  # noqa: PLR2004
        marker = content[at + 1]
        if marker == 0xFF or marker in _JPEG_ALONE:  # noqa: PLR2004
            at += 1 if marker == 0xFF else 2  # noqa: PLR2004
            continue
        (length,) = struct.unpack_from(">H", content, at + 2)
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 5)
            whole = content.find(_END_OF_JPEG, at + length) != -1
            return ImageSize(width, height) if whole else None
        at += 2 + length
    return None


def _webp(content: bytes) -> ImageSize | None:
    (length,) = struct.unpack_from("<I", content, 4)
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP" or length + 8 > len(content) + 1:
        return None
    match content[12:16]:
        case b"VP8 " if content[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", content, 26)
            return ImageSize(width & 0x3FFF, height & 0x3FFF)
        case b"VP8L" if content[20] == 0x2F:  # noqa: PLR2004
            (bits,) = struct.unpack_from("<I", content, 21)
            return ImageSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            sides = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27))
            return ImageSize(*sides) if len(content) >= 30 else None  # noqa: PLR2004
        case _:
            return None


_READERS: Final = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
IMAGES: Final = frozenset(_READERS)
"""The images that providers take."""
