"""What to watch so that no change of a path is missed: its file, its directories, the links on the way."""

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fairlead_tools.context.watch.looked_paths import LookedPath

LINKS_MAX: Final = 40


class Interest(NamedTuple):
    """An existing file or directory, and the name inside it that counts; None: everything about it."""

    place: str
    name: str | None
    is_file: bool = False


def interests(paths: Iterable[LookedPath]) -> frozenset[Interest]:
    """Everything to watch for some paths. Raises OSError if that is unknown."""
    return frozenset(interest for looked in paths for interest in _of_path(*looked))


def _of_path(path: str, inside: bool) -> Iterator[Interest]:  # noqa: FBT001 - a field
    """Each directory on the way with the name of the next step, and at last the file itself.

    A step that does not exist ends the way: its directory tells when it appears. A link adds the way
    to its target.
    """
    steps, place, links, is_file = _steps(path), "/", 0, False
    while steps:
        name = steps.pop(0)
        if name == "..":
            place = os.path.dirname(place)  # noqa: PTH120 - paths as text, before many turns
            continue
        yield Interest(place, name)
        here = os.path.join(place, name)  # noqa: PTH118
        try:
            mode = os.lstat(here).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        if not stat.S_ISLNK(mode):
            place, is_file = here, not stat.S_ISDIR(mode)
            continue
        links += 1
        if links > LINKS_MAX:
            return
        target = os.readlink(here)  # noqa: PTH115
        steps = [*_steps(target), *steps]
        place = "/" if target.startswith("/") else place
    if inside:
        yield Interest(place, None, is_file)


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in {"", "."}]
