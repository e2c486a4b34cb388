"""Texts that protocols share where they have no native form: system updates and tool results."""

from collections.abc import Iterable

import orjson

from fairlead_llm.errors import UnsendableRequest
from fairlead_schema.provider.request import MediaPart, TextPart, ToolResultPart
from fairlead_schema.tools.content import FileContent, TextContent

CONTINUE_TEXT = "(Continue from there.)"
"""A user text after an answer that must go on, because newer models refuse to be prefilled."""


def system_update(text: str) -> str:
    """A chronological system message as user text. Escaping keeps it inside its wrapper."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<system-update>\n{escaped}\n</system-update>"


def result_text(result: ToolResultPart) -> str:
    """A tool result as text: text unchanged, a value as JSON, content without its media."""
    if result.kind == "content":
        parts = result_parts(result)
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return result.value if isinstance(result.value, str) else json_text(result.value)


def result_media(result: ToolResultPart) -> tuple[MediaPart, ...]:
    """The media of a content result."""
    if result.kind != "content":
        return ()
    return tuple(part for part in result_parts(result) if isinstance(part, MediaPart))


def result_parts(result: ToolResultPart) -> tuple[TextPart | MediaPart, ...]:
    """The parts of a content result. Its items are parts already, or the form in the log."""
    items: Iterable[object] = result.value
    return tuple(_part(item) for item in items)


def unsupported_file_text(part: MediaPart, api: str) -> str:
    """The text that replaces a file whose type the API does not take.

    A refusal would block every later turn too, because the file stays in the history.
    """
    return (
        f"[Attached file {part.name or 'without a name'} ({part.mime}): {api} takes no such file.]"
    )


def json_text(value: object) -> str:
    """Compact JSON. Raises UnsendableRequest for a value that JSON cannot hold."""
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise UnsendableRequest(f"A value is not JSON: {error}") from error


def _part(item: object) -> TextPart | MediaPart:
    match item:
        case TextPart() | MediaPart():
            return item
        case TextContent(text=text) | {"type": "text", "text": str(text)}:
            return TextPart(text)
        case FileContent(uri=uri, mime=mime, name=name):
            return MediaPart(uri, mime, name)
        case {"type": "file", "uri": str(uri), "mime": str(mime), **rest}:
            return MediaPart(uri, mime, _text_or_none(rest.get("name")))
        case _:
            raise UnsendableRequest("A tool's content is neither text nor a file")


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
