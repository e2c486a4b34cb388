"""Attachments at admission: data is what its type says, or nothing is admitted."""

from base64 import b64encode
from dataclasses import replace
from hashlib import sha256

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.registers import MemoryLogStatus
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.attachments import is_surely_smaller
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.input.upload import upload
from fairlead_schema.attachments.reference import attachment_uri, id_of_content, object_name
from fairlead_schema.commands.input import AdmitPrompt
from fairlead_schema.commands.transfer import UploadPart
from fairlead_schema.errors import Conflict, InvalidRequest, PayloadTooLarge, SessionNotFound
from fairlead_schema.prompt import AttachedContent, Prompt
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_testing.images import PNG, data_uri, png
from services.ingest.tests.conftest import create_session, events, settings


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("data:image/png;base64,aGk=", "its bytes are no whole image/png"),
        (data_uri("image/jpeg", PNG), "it is declared image/jpeg and its bytes are image/png"),
        ("data:image/png;base64,a*", "its data cannot be read"),
    ],
)
async def test_data_that_is_not_what_it_says_is_refused_with_a_reason(
    context: CommandContext, eventlog: EventLog, uri: str, reason: str
) -> None:
    """D12: nothing of the prompt is admitted, and the answer names the file."""
    await create_session(context)
    command = prompt_with(uri, id="msg_1")

    with pytest.raises(InvalidRequest, match=reason) as refused:
        await prompt(context, "default", command)

    assert refused.value.body.field == "prompt.files.0.uri"
    assert len(await events(eventlog)) == 1


def prompt_with(*uris: str, id: str | None = None) -> AdmitPrompt:  # noqa: A002 - the field's name
    files = [{"uri": uri, "name": f"file{number}"} for number, uri in enumerate(uris)]
    named: dict[str, object] = {} if id is None else {"id": id}
    body = {"sessionID": "ses_1", "prompt": {"text": "look", "files": files}}
    return AdmitPrompt.model_validate(body | named)


async def read(eventlog: EventLog, id_: str) -> bytes:
    pieces = eventlog.attachments.get("default", object_name("ses_1", id_))
    return b"".join([piece async for piece in pieces])


@pytest.fixture(autouse=True)
async def _finalise_newest(eventlog: EventLog) -> None:
    await eventlog.status.finalise(LEVEL_NEWEST)


@pytest.fixture
def roomy(eventlog: EventLog) -> CommandContext:
    return CommandContext(eventlog, settings(prompt_bytes_max=10**6, attachment_inline_bytes=1000))


async def test_large_data_goes_to_the_store_and_a_reference_to_the_log(
    roomy: CommandContext, eventlog: EventLog
) -> None:
    """P-23: no commit holds media above a size, and a retry stores nothing more."""
    await create_session(roomy)
    large, small = png(3, 2, b"x" * 2000), PNG
    command = prompt_with(data_uri("image/png", large), data_uri("image/png", small), id="msg_1")

    receipt = await prompt(roomy, "default", command)

    assert receipt.prompt.files is not None
    first, second = receipt.prompt.files
    assert first.uri == attachment_uri(id_of_content(large))
    assert first.content == AttachedContent(mime="image/png", bytes=len(large), uri=first.uri)
    assert (second.uri, second.content) == (data_uri("image/png", small), None)
    assert await read(eventlog, id_of_content(large)) == large
    assert await prompt(roomy, "default", command) == receipt
    assert len(await events(eventlog)) == 2


async def test_a_retry_is_exact_although_the_limit_has_changed(
    roomy: CommandContext, eventlog: EventLog
) -> None:
    """A-11, P-23: the same bytes are the same prompt, inline or stored."""
    await create_session(roomy)
    command = prompt_with(data_uri("image/png", png(3, 2, b"x" * 2000)), id="msg_1")
    receipt = await prompt(roomy, "default", command)
    later = CommandContext(eventlog, settings(prompt_bytes_max=10**6))

    assert (await prompt(later, "default", command)).admitted_seq == receipt.admitted_seq
    other = prompt_with(data_uri("image/png", png(3, 2, b"y" * 2000)), id="msg_1")
    with pytest.raises(Conflict):
        await prompt(later, "default", other)


async def test_a_wide_image_is_stored_so_that_it_can_be_made_smaller(
    roomy: CommandContext,
) -> None:
    await create_session(roomy)

    receipt = await prompt(roomy, "default", prompt_with(data_uri("image/png", png(5000, 8))))

    assert receipt.prompt.files is not None
    assert receipt.prompt.files[0].content is not None


async def test_before_the_level_is_finalised_data_stays_inline(eventlog: EventLog) -> None:
    """A13: an older release that reads the log still sees the whole file."""
    older = replace(eventlog, status=MemoryLogStatus())
    context = CommandContext(older, settings(prompt_bytes_max=10**6, attachment_inline_bytes=10))
    await create_session(context)
    uri = data_uri("image/png", PNG)

    receipt = await prompt(context, "default", prompt_with(uri))

    assert receipt.prompt.files is not None
    assert receipt.prompt.files[0].uri == uri
    with pytest.raises(InvalidRequest, match="--finalise"):
        await upload(context, "default", upload_part(PNG))


def upload_part(content: bytes, mime: str = "image/png", **fields: object) -> UploadPart:
    digest = sha256(content).hexdigest()
    whole = {
        "sessionID": "ses_1",
        "id": f"fil_{digest}",
        "upload": "try1",
        "part": 0,
        "firstBytes": len(content),
        "data": b64encode(content).decode(),
        "mime": mime,
        "bytes": len(content),
        "total": len(content),
        "digest": digest,
    }
    return UploadPart.model_validate(whole | fields)


async def test_an_uploaded_file_is_attached_by_its_reference(
    context: CommandContext,
) -> None:
    """P-23: a prompt names what was uploaded to its session."""
    await create_session(context)
    stored = await upload(context, "default", upload_part(PNG))

    receipt = await prompt(context, "default", prompt_with(attachment_uri(stored.id)))

    assert receipt.prompt.files is not None
    file = receipt.prompt.files[0]
    assert (file.mime, file.name) == ("image/png", "file0")
    assert file.content is not None
    assert (file.content.bytes, file.content.uri) == (len(PNG), file.uri)


async def test_half_an_upload_is_no_upload(context: CommandContext) -> None:
    """P-23: an upload that stops in the middle leaves nothing that a prompt could name."""
    await create_session(context)
    whole = upload_part(PNG)
    half = UploadPart(
        session_id="ses_1",
        id=whole.id,
        upload="try1",
        part=0,
        first_bytes=9,
        data=b64encode(PNG[:9]),
        total=len(PNG),
    )
    assert not (await upload(context, "default", half)).complete

    with pytest.raises(InvalidRequest, match="no such file was uploaded"):
        await prompt(context, "default", prompt_with(attachment_uri(whole.id)))

    assert (await upload(context, "default", upload_part(PNG, upload="try2"))).complete
    await prompt(context, "default", prompt_with(attachment_uri(whole.id)))


async def test_uploads_that_lie_are_refused(context: CommandContext, eventlog: EventLog) -> None:
    """P-23: about the hash, the size or the type; and uploads to nowhere."""
    with pytest.raises(SessionNotFound):
        await upload(context, "default", upload_part(PNG))
    await create_session(context)
    with pytest.raises(InvalidRequest, match="another hash"):
        await upload(context, "default", upload_part(PNG, id=id_of_content(b"other")))
    with pytest.raises(InvalidRequest, match="another size"):
        await upload(context, "default", upload_part(PNG, total=5))
    with pytest.raises(PayloadTooLarge):
        await upload(context, "default", upload_part(PNG, bytes=10**9, total=10**9))
    with pytest.raises(InvalidRequest, match="declared image/gif and its bytes are image/png"):
        await upload(context, "default", upload_part(PNG, mime="image/gif"))
    assert len(await events(eventlog)) == 1


@pytest.mark.parametrize("character", ["a", '"', "\\", "\0", "\x7f", "é", "\u2028", "😀"])
def test_a_text_that_is_surely_smaller_than_the_limit_is_smaller(character: str) -> None:
    """The size of a short text is not measured, whatever its characters become in JSON."""
    text = Prompt(text=character * 100, synthetic=True)
    size = len(text.model_dump_json().encode())
    limits = range(size - 5, size + 3000)

    assert all(size <= limit for limit in limits if is_surely_smaller(text, limit))
    assert is_surely_smaller(text, limits[-1])
    assert not is_surely_smaller(Prompt(text="a", system="b"), 10**9)


async def test_a_lie_leaves_room_for_the_truth(context: CommandContext) -> None:
    """P-23: content is stored once by its hash, so that a lie must not take its place."""
    await create_session(context)
    for lie in (
        upload_part(PNG, mime="image/gif"),
        upload_part(PNG, upload="empty", data="", firstBytes=0),
        upload_part(PNG, upload="last", part=3, firstBytes=9, data=""),
        upload_part(PNG, upload="other", data=b64encode(PNG[::-1]).decode()),
    ):
        with pytest.raises(InvalidRequest, match="The file is refused"):
            await upload(context, "default", lie)

    assert (await upload(context, "default", upload_part(PNG, upload="true"))).complete
    await prompt(context, "default", prompt_with(attachment_uri(id_of_content(PNG))))
