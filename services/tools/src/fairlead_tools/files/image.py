"""Images for models, made smaller where they exceed the limits, in a process of their own.

A small file may hold a huge image. Run as a program this module reads an image from its standard
input and writes its media type, a line break and the image in base64:

    python -m fairlead_tools.files.image <media type> <limits as JSON>
"""

import base64
import io
import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fairlead_tools.process_limits import limit_this_process

if TYPE_CHECKING:
    from PIL.Image import Image

    from fairlead_service.config.sections import ToolsConfig

SOURCE_BYTES_MAX: Final = 20 << 20
_STEP: Final = 0.75
UNDECODABLE: Final = "Unable to decode image"
_QUALITIES: Final = (85, 70, 55, 40)
# A decoded image of this many pixels takes about 200 MB, and its copy as much again.
PIXELS_MAX: Final = 50_000_000
MEMORY_BYTES_MAX: Final = 1 << 30
CPU_S_MAX: Final = 20
# The exit status of an image that cannot be shown. The output then says why.
REFUSED: Final = 2


class ImageRefused(Exception):
    """An image that cannot be shown. The message says why."""


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """How large an image for a model may be."""

    width_max: int = 2_000
    height_max: int = 2_000
    base64_bytes_max: int = 5 << 20
    auto_resize: bool = True

    @staticmethod
    def of(settings: "ToolsConfig") -> "ImageLimits":
        """The limits of the configuration."""
        return ImageLimits(
            width_max=settings.image_width_max,
            height_max=settings.image_height_max,
            base64_bytes_max=settings.image_bytes_max,
            auto_resize=settings.image_resize,
        )


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image in base64, as it is sent."""

    mime: str
    encoded: str

    @property
    def uri(self) -> str:
        return f"data:{self.mime};base64,{self.encoded}"

    @property
    def decoded(self) -> bytes:
        return base64.b64decode(self.encoded)


def fit_image(raw: bytes, mime: str, limits: ImageLimits) -> EncodedImage:
    """The image itself within the limits, else a smaller one. Raises ImageRefused."""
    try:
        from PIL import Image  # noqa: PLC0415
    except ImportError:
        return EncodedImage(mime, _base64(raw))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(raw), formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
                return _fit(image, raw, mime, limits)
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise ImageRefused(UNDECODABLE) from error


def _fit(image: "Image", raw: bytes, mime: str, limits: ImageLimits) -> EncodedImage:
    width, height = image.size
    if width * height > PIXELS_MAX:
        # Only the head of the file was read so far.
        raise ImageRefused(f"Image is too large to show: {width}x{height} pixels")
    scale = min(limits.width_max / width, limits.height_max / height, 1.0)
    encoded = _base64(raw)
    if scale == 1.0 and len(encoded) <= limits.base64_bytes_max:
        image.verify()
        return EncodedImage(mime, encoded)
    size = f"{width}x{height} pixels, {len(encoded)} bytes in base64"
    if not limits.auto_resize:
        raise ImageRefused(f"Image is too large to show: {size}")
    for smaller in _sizes(image, scale):
        for kind, data in _encodings(smaller):
            encoded = _base64(data)
            if len(encoded) <= limits.base64_bytes_max:
                return EncodedImage(kind, encoded)
    raise ImageRefused(f"Image cannot be made small enough: {size}")


def _sizes(image: "Image", scale: float) -> Iterator["Image"]:
    plain = image.convert("RGBA" if image.has_transparency_data else "RGB")
    width, height = (max(1, int(side * scale)) for side in plain.size)
    while True:
        yield plain.resize((width, height))
        if width == height == 1:
            return
        width, height = max(1, int(width * _STEP)), max(1, int(height * _STEP))


def _encodings(image: "Image") -> Iterator[tuple[str, bytes]]:
    yield "image/png", _encode(image, "PNG", {"optimize": False})
    flat = image.convert("RGB")
    for quality in _QUALITIES:
        yield "image/jpeg", _encode(flat, "JPEG", {"quality": quality})


def _encode(image: "Image", kind: str, options: dict[str, int]) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def main(mime: str, limits: ImageLimits) -> int:
    """Fit the image on standard input, within limits of this process."""
    limit_this_process(memory_bytes=MEMORY_BYTES_MAX, cpu_s=CPU_S_MAX)
    try:
        image = fit_image(sys.stdin.buffer.read(), mime, limits)
    except ImageRefused as error:
        sys.stdout.write(str(error))
        return REFUSED
    sys.stdout.write(f"{image.mime}\n{image.encoded}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], ImageLimits(**json.loads(sys.argv[2]))))
