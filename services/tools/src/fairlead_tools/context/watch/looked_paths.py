"""Which paths a read looked at, whether they exist or not: a change of any of them may change its result."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

_recording: ContextVar["LookedPaths | None"] = ContextVar("looked_paths", default=None)


class LookedPath(NamedTuple):
    """An absolute path, and whether its content or its entries count too, not only that it exists."""

    path: str
    inside: bool


class LookedPaths:
    """The paths of one read."""

    def __init__(self) -> None:
        self.paths: set[LookedPath] = set()
        self.unwatchable: str | None = None
        """Why these paths do not say everything that the read depends on, if so."""


@contextmanager
def record_paths() -> Iterator[LookedPaths]:
    """Record every path that this thread looks at."""
    looked = LookedPaths()
    token = _recording.set(looked)
    try:
        yield looked
    finally:
        _recording.reset(token)


def look_at(*paths: str | Path) -> None:
    """Note that the present read depends on whether these paths exist, and where they lead."""
    looked = _recording.get()
    if looked is not None:
        looked.paths.update(LookedPath(str(path), inside=False) for path in paths)


def look_inside(path: str | Path) -> None:
    """Note that the present read depends on the text of a file, or on the entries of a directory."""
    looked = _recording.get()
    if looked is not None:
        looked.paths.add(LookedPath(str(path), inside=True))


def depend_on_unwatched(what: str) -> None:
    """Note that the present read depends on something that no watch sees."""
    looked = _recording.get()
    if looked is not None:
        looked.unwatchable = what
