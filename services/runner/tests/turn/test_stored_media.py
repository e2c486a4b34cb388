"""Stored attachments in a request: bytes where the model takes them, notes where it does not."""

from collections.abc import AsyncIterator

from fairlead_eventlog.memory.outputs import MemoryOutputs
from fairlead_runner.turn.stored_media import REQUEST_BYTES_MAX, StoredMedia
from fairlead_schema.attachments.reference import attachment_uri, id_of_content, object_name
from fairlead_schema.provider.request import MediaPart, ModelRequest, SystemTurn, TextPart, UserTurn
from fairlead_schema.subjects import Address
from fairlead_testing.images import PDF, PNG, data_uri

AT = Address("default", "ses_1")


async def store(outputs: MemoryOutputs, content: bytes, mime: str) -> MediaPart:
    async def pieces() -> AsyncIterator[bytes]:
        yield content

    id_ = id_of_content(content)
    await outputs.put(AT, object_name(AT.session_id, id_), pieces(), mime=mime)
    return MediaPart(attachment_uri(id_), mime, "a", len(content))


def request_with(*parts: TextPart | MediaPart) -> ModelRequest:
    return ModelRequest("m", turns=(SystemTurn("s"), UserTurn((TextPart("look"), *parts))))


async def shown(
    outputs: MemoryOutputs, *parts: MediaPart, inputs: frozenset[str] | None = None
) -> tuple[TextPart | MediaPart, ...]:
    request = await StoredMedia(outputs).inline(AT, request_with(*parts), inputs)
    turn = request.turns[1]
    assert isinstance(turn, UserTurn)
    return turn.content[1:]


async def test_stored_content_is_sent_as_if_it_were_inline() -> None:
    """P-23: images and documents as media, text as text under its name."""
    outputs = MemoryOutputs()
    image = await store(outputs, PNG, "image/png")
    pdf = await store(outputs, PDF, "application/pdf")
    text = await store(outputs, b"hello", "text/plain")

    assert await shown(outputs, image, pdf, text) == (
        MediaPart(data_uri("image/png", PNG), "image/png", "a"),
        MediaPart(data_uri("application/pdf", PDF), "application/pdf", "a"),
        TextPart("[Attached file a (text/plain):]\nhello\n[End of a]"),
    )


async def test_a_model_is_told_of_a_file_that_it_cannot_take() -> None:
    """P-23: the configuration of the model names its inputs. Text it always takes."""
    outputs = MemoryOutputs()
    image = await store(outputs, PNG, "image/png")
    text = await store(outputs, b"hello", "text/plain")
    inline = MediaPart(data_uri("image/png", PNG), "image/png", "b")

    parts = await shown(outputs, image, inline, text, inputs=frozenset({"text", "pdf"}))

    notes = [part.text for part in parts if isinstance(part, TextPart)]
    assert notes[:2] == [
        "[Attached file a (image/png). This model takes no such file.]",
        "[Attached file b (image/png). This model takes no such file.]",
    ]
    assert "hello" in notes[2]


async def test_content_that_is_gone_is_a_note_and_no_failure() -> None:
    outputs = MemoryOutputs()
    image = await store(outputs, PNG, "image/png")
    outputs.outputs.clear()

    (part,) = await shown(outputs, image)

    assert isinstance(part, TextPart)
    assert "not stored any more" in part.text


async def test_content_of_another_session_cannot_be_named() -> None:
    outputs = MemoryOutputs()
    image = await store(outputs, PNG, "image/png")
    other = Address("default", "ses_2")

    request = await StoredMedia(outputs).inline(other, request_with(image), None)

    assert "not stored any more" in str(request.turns)


async def test_beyond_the_size_of_a_request_older_files_are_left_out() -> None:
    """P-23: the newest files are shown, and the model hears of the others."""
    outputs = MemoryOutputs()
    stored = await store(outputs, PNG, "image/png")
    huge = MediaPart(stored.uri, "image/png", "huge", REQUEST_BYTES_MAX)
    request = ModelRequest("m", turns=(UserTurn((huge,)), UserTurn((stored,))))

    older, newer = (await StoredMedia(outputs).inline(AT, request, None)).turns

    assert "[Attached file huge (image/png). It is left out" in str(older)
    assert newer == UserTurn((MediaPart(data_uri("image/png", PNG), "image/png", "a"),))


async def test_what_was_read_last_is_not_read_again() -> None:
    outputs = MemoryOutputs()
    image = await store(outputs, PNG, "image/png")
    media = StoredMedia(outputs, cache_bytes_max=len(PNG))
    first = await media.inline(AT, request_with(image), None)
    outputs.outputs.clear()

    assert await media.inline(AT, request_with(image), None) == first
