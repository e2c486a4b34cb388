"""Images are recognised by their bytes, made small enough, and kept out of structured output."""

import base64
import hashlib
import io
import resource
import struct
import sys
import zlib
from pathlib import Path

import pytest
from PIL import Image

from fairlead_schema.tools.content import FileContent
from fairlead_service.config.configuration import Config
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.calls.lifecycle import Succeeded
from fairlead_tools.builtin import builtins, read
from fairlead_tools.files import image_process
from fairlead_tools.files.image import ImageLimits, ImageRefused, fit_image
from fairlead_tools.limited_process import run_python
from services.tools.tests.file_calls import failure_of, run_call, text

READ = read.tool()


def draw_image(kind: str, width: int = 4, height: int = 3, *, noise: bool = False) -> bytes:
    image = Image.new("RGB", (width, height), "red")
    if noise:
        rough = hashlib.shake_128(b"rough").digest(width * height * 3)
        image = Image.frombytes("RGB", (width, height), rough)
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def content_image(result: Succeeded) -> tuple[FileContent, Image.Image]:
    """The file part of a result, and the decoded image."""
    _, file = result.content
    assert isinstance(file, FileContent)
    head, _, payload = file.uri.partition(",")
    assert head == f"data:{file.mime};base64"
    return file, Image.open(io.BytesIO(base64.b64decode(payload)))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
async def test_an_image_is_known_by_its_first_bytes(tmp_path: Path, kind: str) -> None:
    """L-20, L-21: the name of the file does not matter."""
    raw = draw_image(kind)
    (tmp_path / "picture.txt").write_bytes(raw)

    result = await run_call(READ, tmp_path, path="picture.txt")

    file, image = content_image(result)
    assert image.size == (4, 3)
    assert file.mime == f"image/{kind.lower()}"
    assert base64.b64decode(file.uri.partition(",")[2]) == raw
    assert text(result) == "The image picture.txt is shown below."


async def test_image_bytes_are_with_the_model_alone(tmp_path: Path) -> None:
    """L-13, L-24: the structured output describes the image without its bytes."""
    (tmp_path / "a.png").write_bytes(draw_image("PNG"))

    result = await run_call(READ, tmp_path, path="a.png")

    assert result.structured == {
        "type": "image",
        "path": "a.png",
        "uri": (tmp_path / "a.png").as_uri(),
        "name": "a.png",
        "mime": "image/png",
    }


async def test_an_image_above_the_intake_limit_is_refused(tmp_path: Path) -> None:
    """L-21: the limit of 20 MiB applies before decoding."""
    with (tmp_path / "a.png").open("wb") as file:
        file.write(draw_image("PNG"))
        file.truncate((20 << 20) + 1)

    assert await failure_of(READ, tmp_path, path="a.png") == "Image exceeds 20 MiB: a.png"


async def test_a_wide_image_is_made_narrower(tmp_path: Path) -> None:
    """L-22: the longer side becomes 2000 pixels, in proportion."""
    (tmp_path / "a.png").write_bytes(draw_image("PNG", 4000, 100))

    _, image = content_image(await run_call(READ, tmp_path, path="a.png"))

    assert image.size == (2000, 50)


def test_a_heavy_image_is_made_lighter() -> None:
    """L-22: the tool tries PNG, then JPEG, then smaller sizes by a quarter each."""
    raw = draw_image("PNG", 300, 300, noise=True)

    light = fit_image(raw, "image/png", ImageLimits(base64_bytes_max=100_000))
    lighter = fit_image(raw, "image/png", ImageLimits(base64_bytes_max=10_000))

    assert light.mime == lighter.mime == "image/jpeg"
    assert len(light.encoded) <= 100_000
    assert Image.open(io.BytesIO(base64.b64decode(light.encoded))).size == (300, 300)
    assert len(lighter.encoded) <= 10_000
    assert Image.open(io.BytesIO(base64.b64decode(lighter.encoded))).size < (300, 300)


def test_an_image_that_never_fits_is_a_size_error() -> None:
    """L-22: a single pixel may be too large for the limit."""
    with pytest.raises(ImageRefused, match="cannot be made small enough"):
        fit_image(draw_image("PNG"), "image/png", ImageLimits(base64_bytes_max=10))


async def test_without_resizing_a_large_image_is_a_size_error(tmp_path: Path) -> None:
    """L-23: a setting turns resizing off."""
    (tmp_path / "a.png").write_bytes(draw_image("PNG", 40, 40))
    strict = read.tool(image_limits=ImageLimits(width_max=20, auto_resize=False))

    message = await failure_of(strict, tmp_path, path="a.png")

    assert message.startswith("Image is too large to show: 40x40 pixels")


async def test_the_limits_can_be_configured(tmp_path: Path) -> None:
    """L-22, L-23: every limit has a setting."""
    (tmp_path / "a.png").write_bytes(draw_image("PNG", 40, 40))
    settings = ToolsConfig(image_width_max=20, image_height_max=30, image_resize=False)
    tools = builtins(Config(tools=settings))

    assert [tool.name for tool in tools][:2] == ["read", "write"]
    message = await failure_of(tools[0], tmp_path, path="a.png")
    assert message.startswith("Image is too large to show")
    resizing = read.tool(
        image_limits=ImageLimits.of(settings.model_copy(update={"image_resize": True}))
    )
    _, image = content_image(await run_call(resizing, tmp_path, path="a.png"))
    assert image.size == (20, 20)


@pytest.mark.parametrize(
    "raw", [draw_image("PNG")[:40], b"\xff\xd8\xff", b"GIF89a", b"RIFF....WEBP"]
)
async def test_an_image_that_cannot_be_decoded_is_an_error(tmp_path: Path, raw: bytes) -> None:
    """L-23: the tool does not guess the size."""
    (tmp_path / "a.png").write_bytes(raw)

    assert await failure_of(READ, tmp_path, path="a.png") == "Unable to decode image: a.png"


async def test_without_a_resizer_the_image_comes_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-23: the size does not matter then."""
    (tmp_path / "a.png").write_bytes(draw_image("PNG", 4000, 2))
    monkeypatch.setitem(sys.modules, "PIL", None)

    _, image = content_image(await run_call(READ, tmp_path, path="a.png"))

    assert image.size == (4000, 2)


async def test_a_transparent_palette_image_is_resized(tmp_path: Path) -> None:
    """L-22: the colour mode does not matter."""
    image = Image.new("P", (2500, 10))
    image.info["transparency"] = 0
    image.save(tmp_path / "a.gif", transparency=0)

    file, small = content_image(await run_call(READ, tmp_path, path="a.gif"))

    assert file.mime == "image/png"
    assert small.size == (2000, 8)


def png_of(width: int, height: int) -> bytes:
    """A valid image of one colour, which is tiny as a file."""
    row = b"\0" + b"\0" * (width // 8)
    compressor = zlib.compressobj(9)
    data = b"".join(compressor.compress(row) for _ in range(height)) + compressor.flush()
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part))
        for name, part in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


async def test_an_image_bomb_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    """B4: 381 KB once took the worker to 1.25 GB."""
    raw = png_of(12_000, 12_000)
    assert len(raw) < 381_000
    (tmp_path / "bomb.png").write_bytes(raw)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    message = await failure_of(READ, tmp_path, path="bomb.png")

    assert message == "Image is too large to show: 12000x12000 pixels: bomb.png"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


async def test_a_large_image_is_decoded_outside_the_worker(tmp_path: Path) -> None:
    """B4: the memory of the decoder is the child's, within the child's limit."""
    (tmp_path / "large.png").write_bytes(png_of(8_000, 6_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    _, image = content_image(await run_call(READ, tmp_path, path="large.png"))

    assert image.size == (2000, 1500)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize(
    "program", ["import os; os.abort()", "x = bytearray(1 << 44)", "print('no status'); exit(9)"]
)
async def test_a_decoder_that_crashes_fails_the_call_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """B4: the worker lives on."""
    (tmp_path / "a.png").write_bytes(draw_image("PNG"))
    monkeypatch.setattr(image_process, "_PROGRAM", ("-c", program))

    assert await failure_of(READ, tmp_path, path="a.png") == "Unable to decode image: a.png"


async def test_a_decoder_that_takes_too_long_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B4, B10: nothing of it outlives the call."""
    (tmp_path / "a.png").write_bytes(draw_image("PNG"))
    monkeypatch.setattr(image_process, "_PROGRAM", ("-c", "while True: pass"))
    monkeypatch.setattr(image_process, "DECODE_S", 0.2)

    message = await failure_of(READ, tmp_path, path="a.png")

    assert message == "The image takes longer than 0.2 s to decode: a.png"


async def test_the_child_gets_no_variable_of_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B3: a defect in a decoder finds no key in its environment."""
    monkeypatch.setenv("ACME_API_KEY", "hush!")
    show = "import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))"

    end = await run_python("-I", "-c", show, body=b"", output_bytes_max=1000)

    assert end.output == b"[]\n"
