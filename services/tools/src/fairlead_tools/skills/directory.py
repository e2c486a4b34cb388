"""Skills in a directory: Markdown files at its top, and `SKILL.md` at any depth."""

import logging
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from fairlead_tools.context.sources.files import (
    TextFiles,
    Unreadable,
    printable_path,
    real_path,
    resolve_inside,
)
from fairlead_tools.context.watch.looked_paths import look_at, look_inside
from fairlead_tools.skills.skill import SKILL, InvalidSkill, Skill, parse

log = logging.getLogger(__name__)

FILES_MAX: Final = 1000
DEPTH_MAX: Final = 8


def load(place: Path, texts: TextFiles) -> tuple[Skill, ...]:
    """The skills of a directory, sorted by path. A file without a valid skill is left out."""
    look_at(place)
    if not place.is_dir():
        return ()
    root = real_path(place)
    loaded = (_load_file(path, root, texts) for path in sorted(islice(_files(root), FILES_MAX)))
    return tuple(skill for skill in loaded if skill is not None)


def _files(root: Path) -> Iterator[Path]:
    top = str(root)
    for place, directories, names in os.walk(top):
        look_inside(place)
        directories.sort()
        if place.removeprefix(top).count(os.sep) >= DEPTH_MAX:
            directories.clear()
        if place == top:
            yield from (root / name for name in names if name.endswith(".md"))
        elif SKILL in names:
            yield Path(place, SKILL)


def _load_file(path: Path, root: Path, texts: TextFiles) -> Skill | None:
    try:
        text = texts.read(resolve_inside(path, root))
        return parse(text, path, name=path.stem if path.parent == root else None)
    except Unreadable as error:
        reason = error.reason
    except InvalidSkill as error:
        reason = str(error)
    log.info(
        "file holds no valid skill: it is left out",
        extra={"path": printable_path(path), "reason": reason},
    )
    return None
