"""The blocks of an editor's prompt as one prompt of ours. Pure."""

from base64 import b64decode
from collections.abc import Sequence
from mimetypes import guess_extension
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from acp import RequestError, schema
from acp.helpers import audio_block, image_block, resource_link_block, text_block

from fairlead_schema.prompt import FileInput

Json: TypeAlias = dict[str, Any]
PromptBlock: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)

INVALID_PARAMS: Final = -32602
INLINE_LENGTH_MAX: Final = 64 * 1024
"""Larger contents are stored before their prompt, as the body of a request has a limit."""
_CLOSES: Final = ",.;:!?)]}"


class JoinedPrompt(NamedTuple):
    text: str
    files: tuple[FileInput, ...]


def join_blocks(blocks: Sequence[PromptBlock]) -> JoinedPrompt:
    """One prompt: the texts in their order, and everything else as files. Raises RequestError.

    Editors cut a text where a person mentions a file. The name of the file stays in its place.
    """
    text, files = "", list[FileInput]()
    follows_name = True
    for block in blocks:
        match block:
            case schema.TextContentBlock():
                text = _join(text, block.text) if follows_name else f"{text}\n{block.text}"
            case schema.ImageContentBlock() | schema.AudioContentBlock():
                files.append(FileInput(uri=f"data:{block.mime_type};base64,{block.data}"))
                continue
            case schema.ResourceContentBlock():
                files.append(FileInput(uri=block.uri, name=block.name))
                text = _join(text, block.name)
            case schema.EmbeddedResourceContentBlock():
                files.append(_file_of(block.resource))
                text = _join(text, files[-1].name or "")
        follows_name = not isinstance(block, schema.TextContentBlock)
    if not text.strip() and not files:
        raise RequestError(INVALID_PARAMS, "The prompt is empty: send a text or a file")
    return JoinedPrompt(text, tuple(files))


def show_prompt(prompt: Json) -> list[PromptBlock]:
    """A prompt of the log as an editor shows it: its text, its media, and links to its other files."""
    blocks: list[PromptBlock] = [text_block(prompt["text"])] if prompt["text"] else []
    for file in prompt.get("files") or ():
        uri, mime = file["uri"], file["mime"]
        head, _, data = uri.partition(",")
        if not uri.startswith("data:"):
            blocks.append(resource_link_block(file.get("name") or uri, uri, mime_type=mime))
        elif head.endswith(";base64") and mime.startswith("image/"):
            blocks.append(image_block(data, mime))
        elif head.endswith(";base64") and mime.startswith("audio/"):
            blocks.append(audio_block(data, mime))
    return blocks


def _join(text: str, piece: str) -> str:
    """The text and the next piece of it, with a blank where none of them has one."""
    is_apart = not text or not piece or text[-1].isspace() or piece[0].isspace()
    return f"{text}{piece}" if is_apart or piece[0] in _CLOSES else f"{text} {piece}"


def _file_of(resource: schema.TextResourceContents | schema.BlobResourceContents) -> FileInput:
    """The content that the editor sent, which may differ from the file on disk."""
    name = resource.uri.rpartition("/")[2] or resource.uri
    if isinstance(resource, schema.BlobResourceContents):
        mime = resource.mime_type or "application/octet-stream"
        return FileInput(uri=f"data:{mime};base64,{resource.blob}", name=name)
    return FileInput(uri=f"data:text/plain,{quote(resource.text)}", name=name)


def large_content(file: FileInput) -> bytes | None:
    """The content of a file that is too large for a prompt; None for any other file. Raises RequestError."""
    head, comma, data = file.uri.partition(",")
    if not comma or not head.startswith("data:") or len(data) <= INLINE_LENGTH_MAX:
        return None
    try:
        return (
            b64decode(data, validate=True) if head.endswith(";base64") else unquote_to_bytes(data)
        )
    except ValueError as error:
        reason = f"the content of {file.name or 'a file'} is not valid base64: {error}"
        raise RequestError(INVALID_PARAMS, reason) from error


def file_name(file: FileInput) -> str:
    """The name by which a file is stored. The store knows its type by the end of the name."""
    mime = file.uri.removeprefix("data:").partition(",")[0].partition(";")[0]
    return file.name or f"file{guess_extension(mime) or ''}"
