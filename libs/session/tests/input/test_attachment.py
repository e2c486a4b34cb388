"""Attachments: every file has its media type before the prompt is admitted."""

import pytest

from fairlead_schema.prompt import AgentMention, FileInput, PromptInput, TextSpan
from fairlead_session.input.attachment import media_type, resolve_attachments


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
    }
    assert (prompt.text, prompt.agents) == (prompt_input.text, prompt_input.agents)


def test_a_prompt_without_files_stays_without() -> None:
    """A-25: absent and empty are told apart, so that equal retries stay equal."""
    assert resolve_attachments(PromptInput(text="hi")).files is None
    assert resolve_attachments(PromptInput(text="hi", files=())).files == ()
