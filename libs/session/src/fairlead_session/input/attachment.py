"""Attachments: every file of a prompt gets its media type before the prompt is admitted."""

from mimetypes import MimeTypes
from typing import Final
from urllib.parse import urlsplit

from fairlead_schema.prompt import FileInput, Prompt, PromptFile, PromptInput

UNKNOWN: Final = "application/octet-stream"
DIRECTORY: Final = "application/x-directory"

# Only the built-in table, so that a name has the same type on every machine.
_TYPES: Final = MimeTypes(filenames=())
_TYPES.add_type("text/markdown", ".md")
_TYPES.add_type("image/webp", ".webp")
_TYPES.add_type("text/x-typescript", ".ts")
_TYPES.add_type("application/toml", ".toml")


def resolve_attachments(prompt: PromptInput) -> Prompt:
    """The prompt in the form that the log stores."""
    files = None if prompt.files is None else tuple(_resolve_file(file) for file in prompt.files)
    return Prompt(text=prompt.text, files=files, agents=prompt.agents)


def media_type(uri: str, name: str | None) -> str:
    """The type in a data URI; else by the extension of the path, else of the name."""
    if uri.startswith("data:"):
        declared = uri[len("data:") :].partition(",")[0].partition(";")[0]
        return declared or "text/plain"
    path = _path(uri) or name or ""
    if path.endswith("/"):
        return DIRECTORY
    guessed, _encoding = _TYPES.guess_type(path)
    return guessed or UNKNOWN


def _resolve_file(file: FileInput) -> PromptFile:
    return PromptFile(
        uri=file.uri,
        mime=media_type(file.uri, file.name),
        name=file.name,
        description=file.description,
        source=file.source,
    )


def _path(uri: str) -> str | None:
    try:
        return urlsplit(uri).path
    except ValueError:
        return None
