"""Decides what a paste is: text to type, a long text to attach, or files that a person dropped."""

import shlex
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

LONG_LINES: Final = 12
LONG_LENGTH: Final = 1_500
DROPPED_MAX: Final = 20
IMAGES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"})
ATTACHABLE: Final = IMAGES | {".pdf"}


@dataclass(frozen=True, slots=True)
class TypedText:
    """A short paste: it goes where the cursor is."""

    text: str


@dataclass(frozen=True, slots=True)
class LongText:
    """A long paste: it becomes an attachment, and the prompt stays readable."""

    text: str

    @property
    def label(self) -> str:
        lines = self.text.count("\n") + 1
        return (
            f"pasted text, {lines} lines" if lines > 1 else f"pasted text, {len(self.text)} chars"
        )


@dataclass(frozen=True, slots=True)
class DroppedFiles:
    """Paths of images or documents: terminals paste the path of a file that is dropped on them."""

    paths: tuple[str, ...]


Pasted: TypeAlias = TypedText | LongText | DroppedFiles


def read_paste(text: str) -> Pasted:
    """What a paste is. Whether a dropped file exists is for the caller to find out."""
    paths = _dropped_paths(text)
    if paths:
        return DroppedFiles(paths)
    if text.count("\n") >= LONG_LINES or len(text) > LONG_LENGTH:
        return LongText(text)
    return TypedText(text)


def _dropped_paths(text: str) -> tuple[str, ...]:
    stripped = text.strip()
    if not stripped or len(stripped) > LONG_LENGTH or stripped.count("\n") >= DROPPED_MAX:
        return ()
    try:
        words = shlex.split(stripped)
    except ValueError:
        words = [stripped]
    # A path with spaces may come without quotes.
    candidates = words if all(map(_is_attachable, words)) else [stripped]
    paths = tuple(_path(word) for word in candidates if _is_attachable(word))
    return paths if len(paths) == len(candidates) else ()


def _is_attachable(word: str) -> bool:
    path = _path(word)
    return path.startswith(("/", "~")) and PurePath(path).suffix.lower() in ATTACHABLE


def _path(word: str) -> str:
    return unquote(urlsplit(word).path) if word.startswith("file://") else word
