"""Fingerprints of prompts: the same attachment is the same, inline, stored and taken."""

from fairlead_schema.attachments.reference import attachment_uri, id_of_content
from fairlead_schema.prompt import AttachedContent, Prompt, PromptFile
from fairlead_session.input.fingerprint import fingerprint
from fairlead_testing.images import GIF, PNG, data_uri


def prompt_with(uri: str, content: AttachedContent | None = None, mime: str = "image/png") -> str:
    file = PromptFile(uri=uri, mime=mime, name="a.png", content=content)
    return fingerprint(Prompt(text="look", files=(file,)))


def test_a_retry_is_exact_whether_its_data_was_stored_or_not() -> None:
    """A-11, P-23: the size from which data is stored may change between two tries."""
    stored = attachment_uri(id_of_content(PNG))
    taken = AttachedContent(mime="image/png", bytes=len(PNG), uri=stored)
    inline = data_uri("image/png", PNG)

    assert prompt_with(inline) == prompt_with(stored) == prompt_with(stored, taken)
    assert prompt_with(inline) == prompt_with(inline.rstrip("="))


def test_another_attachment_is_another_prompt() -> None:
    """A-12, P-23: the content, the type and the place of a file are part of a prompt."""
    prompts = {
        prompt_with(data_uri("image/png", PNG)),
        prompt_with(data_uri("image/png", GIF)),
        prompt_with(data_uri("image/png", PNG), mime="image/gif"),
        prompt_with("file:///w/a.png"),
        prompt_with("file:///w/b.png"),
        fingerprint(Prompt(text="look")),
        fingerprint(Prompt(text="look", files=())),
    }

    assert len(prompts) == 7
