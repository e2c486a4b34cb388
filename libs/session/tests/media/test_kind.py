"""What the bytes of a file are: real files pass, everything else is told from its type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_session.media.image_size import IMAGES, ImageSize, image_size
from fairlead_session.media.kind import PIXELS_MAX, find_lie, media_kind, sniff
from fairlead_testing.images import GIF, JPEG, PDF, PNG, WAV, WEBP, WEBP_LOSSY, png

FILES = [
    ("image/png", PNG),
    ("image/png", png(3, 2, b"x" * 5000)),
    ("image/gif", GIF),
    ("image/jpeg", JPEG),
    ("image/webp", WEBP),
    ("image/webp", WEBP_LOSSY),
    ("application/pdf", PDF),
    ("audio/wav", WAV),
    ("audio/mpeg", b"ID3\x04" + bytes(20)),
    ("audio/mpeg", b"\xff\xfb\x90\x00" + bytes(20)),
]


@pytest.mark.parametrize(("mime", "content"), FILES)
def test_a_real_file_is_what_its_type_says(mime: str, content: bytes) -> None:
    """D12: whatever passes here can be shown to a model."""
    assert find_lie(mime, content) is None
    assert sniff(content) == mime


@pytest.mark.parametrize(("mime", "content"), FILES[:6])
def test_an_image_has_the_size_of_its_header(mime: str, content: bytes) -> None:
    assert image_size(mime, content) == ImageSize(3, 2)


@pytest.mark.parametrize("cut", range(1, len(PNG)))
def test_a_cut_image_is_no_image(cut: int) -> None:
    """D12: a provider refuses half an image in every later turn."""
    assert find_lie("image/png", PNG[:cut]) is not None


def test_a_damaged_image_is_no_image() -> None:
    assert find_lie("image/png", PNG[:45] + b"?" + PNG[46:]) == "its bytes are no whole image/png"
    assert find_lie("image/jpeg", JPEG[:-2]) == "its bytes are no whole image/jpeg"
    assert find_lie("image/webp", WEBP[:-9]) == "its bytes are no whole image/webp"
    assert find_lie("application/pdf", PDF[:40]) == "its bytes are no whole application/pdf"


def test_the_reason_names_what_the_bytes_are() -> None:
    """D12: the caller learns what to change."""
    lie = find_lie("image/jpeg", PNG)

    assert lie == "it is declared image/jpeg and its bytes are image/png"
    assert find_lie("image/png", b"hi") == "its bytes are no whole image/png"
    assert find_lie("image/png", b"") == "it is empty, and no image/png"


def test_a_small_file_with_a_huge_image_is_refused_unread() -> None:
    """P-23: a decompression bomb is told by its header."""
    lie = find_lie("image/png", png(60_000, 60_000))

    assert lie == f"the image has 60000x60000 pixels, and at most {PIXELS_MAX} are shown"


@pytest.mark.parametrize(
    ("content", "charset", "lie"),
    [
        (b"", None, None),
        ("naïve".encode(), None, None),
        ("naïve".encode("latin-1"), "iso-8859-1", None),
        ("naïve".encode("latin-1"), None, "its bytes are no text in utf-8"),
        (b"a\0b", None, "its bytes hold a NUL, so they are no text"),
        (b"a", "klingon", "the character set klingon is not known"),
        (b"a", "zlib", "the character set zlib is not known"),
    ],
)
def test_a_text_is_text(content: bytes, charset: str | None, lie: str | None) -> None:
    assert find_lie("text/plain", content, charset) == lie


@pytest.mark.parametrize(
    ("mime", "kind"),
    [
        ("text/x-python", "text"),
        ("application/json", "text"),
        ("image/svg+xml", "text"),
        ("image/png", "image"),
        ("application/pdf", "pdf"),
        ("audio/x-wav", "audio"),
        ("image/heic", None),
        ("video/mp4", None),
        ("application/zip", None),
    ],
)
def test_a_type_says_how_a_file_is_shown(mime: str, kind: str | None) -> None:
    """P-23: files of other types cannot be shown, and any bytes may carry their type."""
    assert media_kind(mime) == kind
    if kind is None:
        assert find_lie(mime, b"anything") is None


@given(st.binary(max_size=200), st.sampled_from(sorted({*IMAGES, "application/pdf", "audio/mpeg"})))
def test_no_bytes_are_too_odd_to_judge(content: bytes, mime: str) -> None:
    for prefix in (b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF", b"RIFFaaaaWEBPVP8X"):
        find_lie(mime, prefix + content)
