"""Files in a request: canonical data as it is, other data made canonical, the rest a note."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema.provider.request import MediaPart, TextPart
from fairlead_session.input.attachment import media_type
from fairlead_session.media.file_part import file_part

PNG = "data:image/png;base64,aGk="


def test_canonical_data_goes_as_it_is() -> None:
    """O-02: the URI untouched, its parameters too."""
    charset = "data:text/plain;charset=utf-8;base64,aGk="

    assert file_part(PNG, "image/png", "a.png") == MediaPart(PNG, "image/png", "a.png")
    assert file_part(charset, "text/plain", None) == MediaPart(charset, "text/plain")


@pytest.mark.parametrize(
    ("uri", "mime"),
    [
        pytest.param("data:text/plain,h%69", "text/plain", id="percent-encoded"),
        pytest.param("data:;base64,aGk=", "text/plain", id="without a type"),
        pytest.param("data:text/plain;base64,aGk", "text/plain", id="without padding"),
        pytest.param("data:text/plain;base64,a\nGk=", "text/plain", id="with a line break"),
        pytest.param("data:text/plain;base64,aGl=", "text/plain", id="with stray bits"),
        pytest.param("DATA:text/plain;base64,aGk=", "text/plain", id="in capitals"),
    ],
)
def test_other_forms_of_data_become_the_one_that_providers_take(uri: str, mime: str) -> None:
    """O-17: canonical base64 under the declared type."""
    assert file_part(uri, mime, None) == MediaPart("data:text/plain;base64,aGk=", mime)


@pytest.mark.parametrize(
    "uri", ["file:///w/a.png", "https://host/a.png", "", "data:image/png;base64,a*", "data:oops"]
)
def test_what_cannot_be_inlined_is_a_note_with_its_name_and_type(uri: str) -> None:
    """O-16: a turn that refers to it can be sent, now and later."""
    note = file_part(uri, "image/png", "a.png")

    assert isinstance(note, TextPart)
    assert "a.png (image/png)" in note.text
    assert uri.startswith("data:") or uri in note.text


@given(st.binary(), st.sampled_from(["", "image/png", "text/plain;charset=x"]), st.booleans())
def test_any_data_arrives_whole(data: bytes, head: str, web: bool) -> None:  # noqa: FBT001
    encode = base64.urlsafe_b64encode if web else base64.b64encode
    uri = f"data:{head};base64,{encode(data).decode()}"

    part = file_part(uri, media_type(uri, None), None)

    assert isinstance(part, MediaPart)
    assert base64.b64decode(part.uri.partition(",")[2]) == data
    assert part.uri.startswith(f"data:{part.mime};")


@given(st.text(), st.text() | st.just("text/plain; charset=utf-8"), st.text() | st.none())
def test_no_attachment_is_too_odd_to_be_sent(uri: str, mime: str, name: str | None) -> None:
    """What is no note is canonical base64 under one plain type, whatever was attached."""
    for given_uri in (uri, f"data:{uri}", f"data:{mime},{uri}", f"data:x/y;base64,{uri}"):
        part = file_part(given_uri, mime, name)

        if isinstance(part, MediaPart):
            head, _, encoded = part.uri.partition(",")
            assert head.removeprefix("data:").split(";")[0] == part.mime
            assert "base64" in head.split(";")
            assert base64.b64encode(base64.b64decode(encoded)).decode() == encoded
