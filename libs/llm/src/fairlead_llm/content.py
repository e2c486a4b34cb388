"""Texts that every protocol without a native form shares: system updates and tool results."""

from collections.abc import Iterable

import orjson

from fairlead_llm.errors import Unsendable
from fairlead_schema.provider.request import MediaPart, TextPart, ToolResultPart
from fairlead_schema.tools.content import FileContent, TextContent

GO_ON = "(Continue from there.)"
"""Said by nobody, after an answer that is to be continued: newer models refuse to be prefilled."""


def system_update(text: str) -> str:
    """A chronological system message as user text; escaped, so that it cannot close its wrapper."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<system-update>\n{escaped}\n</system-update>"


def result_text(result: ToolResultPart) -> str:
    """A tool result as text: text as it is, values as JSON, of content only its text."""
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
    """The parts of a content result, given as parts or in the form tools record them."""
    items: Iterable[object] = result.value
    return tuple(_part(item) for item in items)


def untaken(part: MediaPart, what: str) -> str:
    """What the model hears of a file whose type its wire has no place for.

    Refusing it would refuse every later turn too: the file stays in the history.
    """
    return (
        f"[Attached file {part.name or 'without a name'} ({part.mime}): {what} takes no such file.]"
    )


def json_text(value: object) -> str:
    """Compact JSON. Raises Unsendable for what JSON cannot say."""
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise Unsendable(f"A value is not JSON: {error}") from error


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
            raise Unsendable("A tool's content is neither text nor a file")


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
