"""Fits an image for a model in a child process, so that a hostile image costs the worker nothing."""

import base64
import json
from dataclasses import asdict
from importlib.util import find_spec
from typing import Final

from fairlead_tools.files.image import (
    REFUSED,
    UNDECODABLE,
    EncodedImage,
    ImageLimits,
    ImageRefused,
)
from fairlead_tools.limited_process import run_python

DECODE_S: Final = 30.0
_PROGRAM: Final = ("-I", "-m", "fairlead_tools.files.image")
# More than the media type needs.
_HEAD: Final = 100


async def fit_image_in_child(raw: bytes, mime: str, limits: ImageLimits) -> EncodedImage:
    """The image itself within the limits, else a smaller one. Raises ImageRefused."""
    if find_spec("PIL") is None:
        return EncodedImage(mime, base64.b64encode(raw).decode("ascii"))
    # An image that fits comes back as it is, so the output is bounded by the larger of the two.
    longest = max(limits.base64_bytes_max, len(raw) * 4 // 3 + 4) + _HEAD
    try:
        end = await run_python(
            *(*_PROGRAM, mime, json.dumps(asdict(limits))),
            body=raw,
            output_bytes_max=longest,
            timeout_s=DECODE_S,
        )
    except TimeoutError as error:
        raise ImageRefused(f"The image takes longer than {DECODE_S:g} s to decode") from error
    text = end.output.decode()
    if end.status == REFUSED:
        raise ImageRefused(text)
    if end.status != 0:
        # The child ran out of memory or processor time, or its decoder crashed.
        raise ImageRefused(UNDECODABLE)
    kind, _, encoded = text.partition("\n")
    return EncodedImage(kind, encoded)
