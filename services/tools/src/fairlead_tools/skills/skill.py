"""A skill: its name, when it helps, and the instructions themselves."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from fairlead_tools.skills import front_matter

SKILL: Final = "SKILL.md"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
DESCRIPTION_LENGTH_MAX: Final = 1024
# Skills are listed before every turn and seldom change.
CACHED_MAX: Final = 1024


class InvalidSkill(Exception):
    """A file without a valid skill. The message says why."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. `path` is its file; the built-in skill has none."""

    name: str
    content: str
    description: str | None = None
    slash: bool = False
    path: Path | None = None

    @property
    def directory(self) -> Path | None:
        """The directory with the files of the skill; a single Markdown file has none."""
        return self.path.parent if self.path is not None and self.path.name == SKILL else None


@lru_cache(CACHED_MAX)
def parse(text: str, path: Path | None, *, name: str | None = None) -> Skill:
    """The skill in a text. `name` is its name if the text gives none.

    Raises InvalidSkill.
    """
    try:
        fields, content = front_matter.split(text)
    except front_matter.InvalidFrontMatter as error:
        raise InvalidSkill(str(error)) from error
    skill_name = fields.get("name") or name
    if skill_name is None:
        raise InvalidSkill("it has no name")
    if NAME.fullmatch(skill_name) is None:
        raise InvalidSkill(f"{skill_name!r} is no valid name: it must match {NAME.pattern}")
    description = " ".join(fields.get("description", "").split())[:DESCRIPTION_LENGTH_MAX]
    return Skill(
        name=skill_name,
        content=content,
        description=description or None,
        slash=fields.get("slash", "").lower() == "true",
        path=path,
    )
