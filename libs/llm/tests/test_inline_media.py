"""Files on every protocol: refusals, and the texts that replace unsupported files."""

import base64

import pytest

from fairlead_llm.errors import UnsendableRequest
from fairlead_llm.protocol import PROTOCOLS
from fairlead_schema.provider.request import (
    AssistantTurn,
    MediaPart,
    ModelRequest,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)

every_protocol = pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
QUESTION = UserTurn((TextPart("look"),))
ZIP = MediaPart("data:application/zip;base64,UEs=", "application/zip", "a.zip")


def media_part(mime: str, data: bytes) -> MediaPart:
    return MediaPart(f"data:{mime};base64,{base64.b64encode(data).decode()}", mime)


def body(protocol: str, *turns: Turn) -> str:
    return str(PROTOCOLS[protocol].body(ModelRequest("m", turns=turns)))


@every_protocol
@pytest.mark.parametrize(
    "part",
    [
        pytest.param(MediaPart("file:///a.png", "image/png"), id="not inline, O-16"),
        pytest.param(MediaPart("https://x/a.png", "image/png"), id="elsewhere, O-16"),
        pytest.param(MediaPart("data:image/png,hi", "image/png"), id="not base64, O-17"),
        pytest.param(MediaPart("data:image/png;base64,a*", "image/png"), id="broken, O-17"),
        pytest.param(MediaPart("data:image/png;base64,aGl=", "image/png"), id="canonical, O-17"),
        pytest.param(MediaPart("data:image/png;base64,aGk=", "image/gif"), id="mislabelled, O-17"),
        pytest.param(media_part("image/png", b"0" * (20 * 1024 * 1024 + 1)), id="decoded, O-17"),
        pytest.param(media_part("image/png", b"0" * (21 * 1024 * 1024 + 1)), id="encoded, O-17"),
    ],
)
def test_media_that_is_not_inline_or_not_sound_is_refused_before_sending(
    protocol: str, part: MediaPart
) -> None:
    """O-16, O-17: a session normalises files before it sends them."""
    with pytest.raises(UnsendableRequest):
        body(protocol, UserTurn((part,)))


@every_protocol
def test_the_model_hears_of_a_file_whose_type_its_wire_does_not_take(protocol: str) -> None:
    """O-16: a refusal would block every later turn of the session."""
    request_body = body(protocol, UserTurn((TextPart("look"), ZIP)))

    assert "[Attached file a.zip (application/zip):" in request_body
    assert "UEs=" not in request_body


@every_protocol
def test_the_model_hears_of_such_a_file_in_a_result_too(protocol: str) -> None:
    call = ToolCallPart("t1", "fetch", {})
    result = ToolResultPart("t1", "fetch", "content", (TextPart("got it"), ZIP))

    request_body = body(protocol, QUESTION, AssistantTurn((call,)), ToolTurn(result))

    assert "got it" in request_body
    assert "[Attached file a.zip (application/zip):" in request_body
    assert "UEs=" not in request_body
