"""`core/skills`: the skills that the selected agent may load."""

from functools import lru_cache
from typing import Final

from fairlead_schema.context import ObservedSource
from fairlead_schema.permission import PermissionRule
from fairlead_session.people.permission import effect, is_hidden
from fairlead_tools.skills.skill import Skill

KEY: Final = "core/skills"
ACTION: Final = "skill"
# Skills are listed before every turn and seldom change.
KEPT_MAX: Final = 256

LEAD: Final = (
    "Skills are instructions for particular tasks. When a task fits one of these descriptions, "
    "load that skill with the `skill` tool before you begin."
)
CHANGED: Final = "The skills have changed. This list replaces the earlier one."
NONE: Final = "No skills are available."
REVOKED: Final = "The skills you were told of are no longer available."


@lru_cache(KEPT_MAX)
def observe(
    skills: tuple[Skill, ...], rules: tuple[PermissionRule, ...] | None
) -> ObservedSource | None:
    """The skills that an agent may load, by name; None for an unknown agent or one without skills."""
    if rules is None or is_hidden(rules, ACTION):
        return None
    entries = sorted(
        [skill.name, skill.description]
        for skill in skills
        if skill.description and effect(rules, ACTION, skill.name) != "deny"
    )
    lines = "\n".join(f"- {name}: {description}" for name, description in entries) or NONE
    return ObservedSource(
        key=KEY,
        value=entries,
        baseline=f"{LEAD}\n{lines}",
        update=f"{CHANGED}\n{lines}",
        removed=REVOKED,
    )
