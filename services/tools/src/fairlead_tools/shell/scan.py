"""Finds absolute paths outside the location in the text of a command. Advisory: it proves nothing."""

import re
import shlex
from itertools import islice
from pathlib import Path
from typing import Final

# Paths that most commands may name.
_COMMON: Final = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/tmp")  # noqa: S108
_PROGRAMS: Final = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin")
_PATH: Final = re.compile(r"(?:^|[=:<>&|;(])(/[^\s=:<>&|;()]*)")
PATHS_MAX: Final = 10
# The event loop waits for the search, so the rest of a longer command is not searched.
SEARCHED_LENGTH: Final = 16_384


def outside_paths(command: str, *directories: Path) -> tuple[str, ...]:
    """The first absolute paths in a command that lie in none of these directories."""
    text = command[:SEARCHED_LENGTH]
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    paths = dict.fromkeys(path for word in words for path in _PATH.findall(word))
    allowed = (*directories, *map(Path, (*_COMMON, *_PROGRAMS)))
    outside = (path for path in paths if not _within(Path(path), allowed))
    return tuple(islice(outside, PATHS_MAX))


def _within(path: Path, directories: tuple[Path, ...]) -> bool:
    plain = Path(*(part for part in path.parts if part != "."))
    if ".." in plain.parts:
        return False
    return any(plain.is_relative_to(directory) for directory in directories)
