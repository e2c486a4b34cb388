"""Attachments in a request: text under its name, media as media, everything else as a note."""

import pytest

from fairlead_schema.attachments.reference import attachment_uri, id_of_content
from fairlead_schema.prompt import AttachedContent, PromptFile
from fairlead_schema.provider.request import MediaPart, TextPart
from fairlead_session.media.attachment_parts import (
    TEXT_BYTES_MAX,
    attachment_parts,
    missing_part,
    stored_text,
)
from fairlead_testing.images import PNG, data_uri

STORED = attachment_uri(id_of_content(b"x"))


def parts_of(
    uri: str, mime: str, name: str | None = None, content: AttachedContent | None = None
) -> tuple[TextPart | MediaPart, ...]:
    return attachment_parts(PromptFile(uri=uri, mime=mime, name=name, content=content))


def test_an_inline_text_keeps_its_name() -> None:
    """D17, P-23: the model learns which file a text is."""
    (part,) = parts_of(data_uri("text/markdown", b"# Tides"), "text/markdown", "notes.md")

    assert part == TextPart("[Attached file notes.md (text/markdown):]\n# Tides\n[End of notes.md]")


def test_an_inline_text_is_read_in_its_own_character_set() -> None:
    (part,) = parts_of("data:text/plain;charset=iso-8859-1,na%EFve", "text/plain")

    assert isinstance(part, TextPart)
    assert "naïve" in part.text


def test_an_inline_image_is_media() -> None:
    """O-02: the URI as it is."""
    uri = data_uri("image/png", PNG)

    assert parts_of(uri, "image/png", "a.png") == (MediaPart(uri, "image/png", "a.png"),)


def test_an_image_of_an_earlier_release_that_is_none_is_a_note() -> None:
    """D12: a session that already holds such a file can go on."""
    (part,) = parts_of("data:image/png;base64,aGk=", "image/png", "a.png")

    assert isinstance(part, TextPart)
    assert "a.png (image/png)" in part.text
    assert "its bytes are no whole image/png" in part.text


@pytest.mark.parametrize("mime", ["application/zip", "image/heic", "video/mp4"])
def test_a_file_that_no_model_can_see_is_a_note(mime: str) -> None:
    """P-23: the model learns that there is a file, and that it was not shown."""
    for part in (*parts_of(data_uri(mime, b"UEs"), mime, "a"), *parts_of(STORED, mime, "a")):
        assert isinstance(part, TextPart)
        assert f"a ({mime})" in part.text


def test_a_taken_text_has_its_name_and_its_note() -> None:
    """P-23: what the model sees of `file:///w/a.py`."""
    content = AttachedContent(mime="text/x-python", text="x = 1", note="Only 5 of 900 bytes")

    assert parts_of("file:///w/a.py", "text/x-python", None, content) == (
        TextPart("[Attached file file:///w/a.py (text/x-python):]\nx = 1\n[End of file:///w/a.py]"),
        TextPart("[Only 5 of 900 bytes]"),
    )


def test_stored_media_stays_a_reference() -> None:
    """P-23: neither the log nor the folded session holds the bytes."""
    content = AttachedContent(mime="image/png", bytes=90_000, uri=STORED)

    assert parts_of("https://host/a.png", "image/png", "a.png", content) == (
        MediaPart(STORED, "image/png", "a.png", 90_000),
    )


def test_what_could_not_be_taken_says_why() -> None:
    content = AttachedContent(mime="text/plain", note="There is no such file.")

    (part,) = parts_of("file:///w/gone", "text/plain", "gone", content)

    assert part == TextPart("[Attached file gone (text/plain). There is no such file.]")


def test_a_stored_text_is_cut_where_it_is_too_long() -> None:
    part = MediaPart(STORED, "text/plain", "log.txt")

    assert stored_text(part, b"short").text.count("Cut here") == 0
    long = stored_text(part, b"a" * (TEXT_BYTES_MAX + 7)).text
    assert f"{TEXT_BYTES_MAX} of {TEXT_BYTES_MAX + 7} bytes are shown" in long
    assert long.startswith("[Attached file log.txt (text/plain):]\n")


def test_an_attachment_that_is_gone_is_a_note() -> None:
    assert "not stored any more" in missing_part(MediaPart(STORED, "image/png", "a.png")).text
