"""Attachments: every file has its media type before the prompt is admitted."""

import pytest

from fairlead_schema.prompt import AgentMention, FileInput, PromptInput, TextSpan
from fairlead_session.input.attachment import (
    FILES_MAX,
    check_attachments,
    media_type,
    resolve_attachments,
)
from fairlead_testing.images import PNG, data_uri


@pytest.mark.parametrize(
    ("uri", "name", "expected"),
    [
        ("data:image/webp;base64,AAAA", "a.txt", "image/webp"),
        ("data:text/html,<p>", None, "text/html"),
        ("data:;base64,AAAA", None, "text/plain"),
        ("file:///work/app.py", None, "text/x-python"),
        ("file:///work/app.py?line=3#top", "a.png", "text/x-python"),
        ("https://host/photo.PNG", None, "image/png"),
        ("notes.md", None, "text/markdown"),
        ("file:///work/src/", None, "application/x-directory"),
        ("http://[broken", "table.csv", "text/csv"),
        ("http://[broken", "folder/", "application/x-directory"),
        ("http://[broken", None, "application/octet-stream"),
        ("file:///work/LICENSE", "a.png", "application/octet-stream"),
        ("https://host", "a.png", "image/png"),
    ],
)
def test_a_media_type_comes_from_the_data_then_the_path_then_the_name(
    uri: str, name: str | None, expected: str
) -> None:
    """A-24: data types win, then the extension of the path or of the name, else unknown."""
    assert media_type(uri, name) == expected


def test_resolving_keeps_everything_the_caller_said() -> None:
    """A-24: resolution adds media types and loses nothing."""
    span = TextSpan(start=0, end=5, text="@a.py")
    prompt_input = PromptInput(
        text="see @a.py",
        files=(FileInput(uri="a.py", name="a", description="code", source=span),),
        agents=(AgentMention(name="plan"),),
    )

    prompt = resolve_attachments(prompt_input)

    assert prompt.files is not None
    assert prompt.files[0].model_dump() == {
        "uri": "a.py",
        "mime": "text/x-python",
        "name": "a",
        "description": "code",
        "source": span.model_dump(),
        "content": None,
    }
    assert (prompt.text, prompt.agents) == (prompt_input.text, prompt_input.agents)


def test_a_prompt_without_files_stays_without() -> None:
    """A-25: absent and empty are told apart, so that equal retries stay equal."""
    assert resolve_attachments(PromptInput(text="hi")).files is None
    assert resolve_attachments(PromptInput(text="hi", files=())).files == ()


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("data:image/png;base64,aGk=", "its bytes are no whole image/png"),
        (data_uri("image/gif", PNG), "it is declared image/gif and its bytes are image/png"),
        ("data:image/png;base64,a*", "its data cannot be read: it has no comma, or is not base64"),
        ("data:oops", "its data cannot be read: it has no comma, or is not base64"),
        ("data:text/plain;base64,/w==", "its bytes are no text in utf-8"),
        (data_uri("image/png", PNG), None),
        (data_uri("IMAGE/PNG", PNG), None),
        ("data:application/x-unknown;base64,/w==", None),
        ("file:///nowhere.png", None),
    ],
)
def test_inline_data_is_checked_against_its_type(uri: str, reason: str | None) -> None:
    """D12, P-23: a file that a provider would refuse is refused before it is history."""
    files = (FileInput(uri="a.py"), FileInput(uri=uri))
    refused = check_attachments(resolve_attachments(PromptInput(text="see", files=files)))

    assert (None if refused is None else (refused.index, refused.reason)) == (
        None if reason is None else (1, reason)
    )


def test_a_prompt_has_so_many_files_and_no_more() -> None:
    files = tuple(FileInput(uri=f"{number}.py") for number in range(FILES_MAX + 1))

    assert check_attachments(resolve_attachments(PromptInput(text="x", files=files[1:]))) is None
    assert check_attachments(resolve_attachments(PromptInput(text="x", files=files))) is not None
