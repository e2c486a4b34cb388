"""Looks up what a prompt names at a location: files and directories by path, a skill by name."""

import asyncio
import stat

from fairlead_schema.commands.location_catalog import FoundPath, LookUpNames, NamesFound
from fairlead_schema.permission import PermissionRule
from fairlead_service.config.configuration import Config
from fairlead_service.locations import LocationRefused, locate
from fairlead_session.people.permission import effect
from fairlead_tools.calls.permission import READ, agent_rules
from fairlead_tools.files.path import PathRefused, resolve
from fairlead_tools.skills.catalog import SkillCatalog
from fairlead_tools.skills.skill_list import describe, load_skills, permitted_skills


async def look_up_names(config: Config, catalog: SkillCatalog, question: LookUpNames) -> NamesFound:
    """What the location has of these names, as far as the agent may use it.

    Raises ServiceUnavailable if the skills cannot be read.
    """
    rules = agent_rules(config, question.agent)
    if rules is None:
        return NamesFound()
    paths = await asyncio.to_thread(_find_paths, config, question, rules)
    skill = None
    if question.skill is not None:
        skills = await load_skills(catalog, question.tenant, question.location)
        named = (skill for skill in skills if skill.name == question.skill)
        skill = next(iter(permitted_skills(tuple(named), rules)), None)
    return NamesFound(paths=paths, skill=None if skill is None else describe(skill))


def _find_paths(
    config: Config, question: LookUpNames, rules: tuple[PermissionRule, ...]
) -> tuple[FoundPath, ...]:
    """The paths that lead to a file or a directory inside the location."""
    if not question.paths:
        return ()
    checked = locate(config.roots(question.tenant), question.location)
    if isinstance(checked, LocationRefused):
        return ()
    found = []
    for name in question.paths:
        uri = _find_path(question.location.directory, checked, name, rules)
        if uri is not None:
            found.append(FoundPath(name=name, uri=uri))
    return tuple(found)


def _find_path(
    directory: str, checked: str, name: str, rules: tuple[PermissionRule, ...]
) -> str | None:
    try:
        place = resolve(directory, name, checked)
        mode = place.path.stat().st_mode
    except (PathRefused, OSError):
        return None
    if place.root is None or effect(rules, READ, place.resource) == "deny":
        return None
    if stat.S_ISDIR(mode):
        return f"{place.path.as_uri()}/"
    return place.path.as_uri() if stat.S_ISREG(mode) else None
