"""Taken content: which attachments need some, and a prompt with what was taken."""

from fairlead_schema.attachments.reference import attachment_id
from fairlead_schema.prompt import AttachedContent, Prompt, PromptFile
from fairlead_session.media.data_uri import is_data_uri
from fairlead_session.media.image_size import IMAGES


def needs_content(file: PromptFile) -> bool:
    """Whether the content of a file is taken before the model sees the prompt.

    A file that lies elsewhere is read. A stored image is made small enough for a model.
    """
    if file.content is None:
        return not is_data_uri(file.uri)
    is_untouched = file.content.uri == file.uri and attachment_id(file.uri) is not None
    return is_untouched and file.mime in IMAGES


def with_contents(prompt: Prompt, contents: tuple[AttachedContent, ...]) -> Prompt:
    """The prompt with the content of each file that needs some, in order. Raises ValueError."""
    left = iter(contents)
    files: list[PromptFile] = []
    for file in prompt.files or ():
        if not needs_content(file):
            files.append(file)
            continue
        content = next(left, None)
        if content is None:
            raise ValueError("an answer for fewer files than were asked about")
        files.append(file.model_copy(update={"content": content}))
    return prompt.model_copy(update={"files": tuple(files)})
