"""Attachments: every file of a prompt gets its media type, and inline data is checked against it."""

from dataclasses import dataclass
from mimetypes import MimeTypes
from typing import Final
from urllib.parse import urlsplit

from fairlead_schema.prompt import FileInput, Prompt, PromptFile, PromptInput
from fairlead_session.frozen import build_model
from fairlead_session.media.data_uri import is_data_uri, parse_data_uri
from fairlead_session.media.kind import find_lie, sniff

FILES_MAX: Final = 100
UNKNOWN: Final = "application/octet-stream"
DIRECTORY: Final = "application/x-directory"

# Only the built-in table, so that a name has the same type on every machine.
_TYPES: Final = MimeTypes(filenames=())
_TYPES.add_type("text/markdown", ".md")
_TYPES.add_type("image/webp", ".webp")
_TYPES.add_type("text/x-typescript", ".ts")
_TYPES.add_type("application/toml", ".toml")


@dataclass(frozen=True, slots=True)
class AttachmentRefused:
    """A file that no prompt may carry, by its place in the prompt."""

    index: int
    reason: str


def resolve_attachments(prompt: PromptInput) -> Prompt:
    """The prompt in the form that the log stores."""
    files = None if prompt.files is None else tuple(_resolve_file(file) for file in prompt.files)
    return build_model(
        Prompt,
        system=prompt.system,
        model=prompt.model,
        agent=prompt.agent,
        tools=prompt.tools,
        output_schema=prompt.output_schema,
        text=prompt.text,
        files=files,
        agents=prompt.agents,
        synthetic=prompt.synthetic,
    )


def check_attachments(prompt: Prompt) -> AttachmentRefused | None:
    """The first file that is refused: data that cannot be read or is not what its type says."""
    files = prompt.files or ()
    if len(files) > FILES_MAX:
        return AttachmentRefused(FILES_MAX, f"a prompt has at most {FILES_MAX} files")
    for index, file in enumerate(files):
        reason = _find_fault(file) if is_data_uri(file.uri) else None
        if reason is not None:
            return AttachmentRefused(index, reason)
    return None


def media_type(uri: str, name: str | None) -> str:
    """The type in a data URI; else by the extension of the path, else of the name."""
    if is_data_uri(uri):
        declared = uri[len("data:") :].partition(",")[0].partition(";")[0]
        return declared.strip().lower() or "text/plain"
    path = _path(uri) or name or ""
    if path.endswith("/"):
        return DIRECTORY
    guessed, _encoding = _TYPES.guess_type(path)
    return guessed or UNKNOWN


def detect_type(content: bytes, name: str | None) -> str:
    """The type of a file whose sender named none: by its bytes, then by its name, then as text."""
    sniffed = sniff(content)
    if sniffed is not None:
        return sniffed
    guessed = UNKNOWN if name is None else media_type("", name)
    if guessed != DIRECTORY and find_lie(guessed, content) is None and guessed != UNKNOWN:
        return guessed
    return UNKNOWN if find_lie("text/plain", content) else "text/plain"


def _resolve_file(file: FileInput) -> PromptFile:
    return PromptFile(
        uri=file.uri,
        mime=media_type(file.uri, file.name),
        name=file.name,
        description=file.description,
        source=file.source,
    )


def _find_fault(file: PromptFile) -> str | None:
    parsed = parse_data_uri(file.uri)
    if parsed is None:
        return "its data cannot be read: it has no comma, or is not base64"
    return find_lie(file.mime, parsed.content, parsed.charset)


def _path(uri: str) -> str | None:
    try:
        return urlsplit(uri).path
    except ValueError:
        return None
