"""Front matter: the `key: value` lines at the start of a Markdown file.

Not a YAML parser: values are text, a colon inside a value needs no quotes, nested values are skipped.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

FENCE: Final = "---"
_KEY: Final = re.compile(r"([A-Za-z_][\w-]*)\s*:(?:\s+(.*)|)$")
_BLOCK: Final = re.compile(r"([|>])[+-]?$")


class InvalidFrontMatter(Exception):
    """The front matter has no end, or holds a line that is not `key: value`."""


def split(text: str) -> tuple[Mapping[str, str], str]:
    """The fields of a file and the text after them. Raises InvalidFrontMatter."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        return {}, text
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise InvalidFrontMatter("the front matter has no end")
    return _fields(lines[1:end]), "\n".join(lines[end + 1 :]).strip("\n")


def _fields(lines: list[str]) -> dict[str, str]:
    fields: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        if line[:1] in {" ", "\t", ""}:
            if current is not None:
                current.append(line.strip())
            continue
        if line.startswith(("#", "- ")):
            continue
        match = _KEY.match(line)
        if match is None:
            raise InvalidFrontMatter(f"not `key: value`: {line!r}")
        current = fields.setdefault(match[1], [])
        current[:] = [(match[2] or "").strip()]
    return {key: _value(*lines) for key, lines in fields.items()}


def _value(first: str, *more: str) -> str:
    block = _BLOCK.match(first)
    if block is not None:
        return ("\n" if block[1] == "|" else " ").join(more).strip()
    whole = " ".join(part for part in (first, *more) if part)
    if len(whole) > 1 and whole[0] == whole[-1] == "'":
        return whole[1:-1].replace("''", "'")
    if len(whole) > 1 and whole[0] == whole[-1] == '"':
        try:
            return str(json.loads(whole))
        except ValueError:
            return whole[1:-1]
    return whole
