"""The blocks of an editor's prompt as one prompt of ours. Pure."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias
from urllib.parse import quote

from acp import RequestError, schema

from fairlead_schema.prompt import FileInput

PromptBlock: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)


class JoinedPrompt(NamedTuple):
    text: str
    files: tuple[FileInput, ...]


def join_blocks(blocks: Sequence[PromptBlock]) -> JoinedPrompt:
    """One prompt: the texts in their order, and everything else as files. Raises RequestError."""
    texts: list[str] = []
    files: list[FileInput] = []
    for block in blocks:
        match block:
            case schema.TextContentBlock():
                texts.append(block.text)
            case schema.ImageContentBlock() | schema.AudioContentBlock():
                files.append(FileInput(uri=f"data:{block.mime_type};base64,{block.data}"))
            case schema.ResourceContentBlock():
                files.append(FileInput(uri=block.uri, name=block.name))
            case schema.EmbeddedResourceContentBlock():
                files.append(_file_of(block.resource))
    if not any(text.strip() for text in texts) and not files:
        raise RequestError.invalid_params({"prompt": "the prompt is empty: send a text or a file"})
    return JoinedPrompt("\n".join(texts), tuple(files))


def _file_of(resource: schema.TextResourceContents | schema.BlobResourceContents) -> FileInput:
    """The content that the editor sent, which may differ from the file on disk."""
    name = resource.uri.rpartition("/")[2] or resource.uri
    if isinstance(resource, schema.BlobResourceContents):
        mime = resource.mime_type or "application/octet-stream"
        return FileInput(uri=f"data:{mime};base64,{resource.blob}", name=name)
    return FileInput(uri=f"data:text/plain,{quote(resource.text)}", name=name)
