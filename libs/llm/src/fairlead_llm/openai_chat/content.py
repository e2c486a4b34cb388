"""The content of a delta: a text, or a list of parts with text and thinking."""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["text", "reasoning", "unknown"]


def read_content(content: object) -> Iterator[tuple[Kind, str]]:
    """The texts of a content in order. A part of an unknown type comes with the name of its type."""
    if isinstance(content, str):
        if content:
            yield "text", content
        return
    for part in content if isinstance(content, list) else ():
        yield from _read_part(part if isinstance(part, dict) else {"type": type(part).__name__})


def _read_part(part: dict[str, Any]) -> Iterator[tuple[Kind, str]]:
    match part:
        case {"type": "thinking", "thinking": list() as inner}:
            texts = (item.get("text") for item in inner if isinstance(item, dict))
            yield from (("reasoning", text) for text in texts if text and isinstance(text, str))
        case {"type": "thinking", "thinking": str() as text} if text:
            yield "reasoning", text
        case {"text": str() as text}:
            if text:
                yield "text", text
        case _:
            yield "unknown", str(part.get("type"))
