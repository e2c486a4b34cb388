"""Real files of a few bytes, one of each type that providers take."""

import base64
import struct
import zlib
from typing import Final

PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAFUlEQVR4nGM8wcXFwMDAwMDAxAADABByAOAp6i43AAAAAElF"
    "TkSuQmCC"
)
GIF: Final = base64.b64decode("R0lGODdhAwACAIEAAMgKCgAAAAAAAAAAACwAAAAAAwACAAAIBgABCBwYEAA7")
WEBP: Final = base64.b64decode("UklGRh4AAABXRUJQVlA4TBEAAAAvAkAAAAdQhSJXof+BiOh/AAA=")
WEBP_LOSSY: Final = base64.b64decode(
    "UklGRjIAAABXRUJQVlA4ICYAAABwAQCdASoDAAIAB0CWJaACdAFAAAD+6DixhNJbd/uD9QfxA2AAAA=="
)
JPEG: Final = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffc0000b080002000301011100"
) + (b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\xd2\xff\xd9")
"""The structure of a JPEG of 3 by 2 pixels. No decoder would show its pixels."""
PDF: Final = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
WAV: Final = b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x02\0\0\0\0\0"


def png(width: int, height: int, filler: bytes = b"") -> bytes:
    """A PNG that claims a size, with as many bytes of comment as a test needs."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * (min(width, 8) + 1) * min(height, 8))
    chunks = ((b"IHDR", head), (b"tEXt", b"a\0" + filler), (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def data_uri(mime: str, content: bytes) -> str:
    """Content inside a URI."""
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
