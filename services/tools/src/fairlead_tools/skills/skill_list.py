"""`skill.list`: the skills of a location, for clients that show them to people."""

import asyncio

from fairlead_schema.commands.location_catalog import ListSkills, SkillInfo, Skills
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import PermissionRule
from fairlead_service.config.configuration import Config
from fairlead_session.people.permission import effect
from fairlead_tools.calls.permission import agent_rules
from fairlead_tools.context.sources.files import Unreadable, printable_path
from fairlead_tools.context.sources.skills import ACTION
from fairlead_tools.location_files.access import permitted_directory
from fairlead_tools.skills.catalog import SkillCatalog
from fairlead_tools.skills.skill import Skill


async def list_skills(
    config: Config, catalog: SkillCatalog, tenant: TenantId, command: ListSkills
) -> Skills:
    """The skills of a location. Raises InvalidRequest, Forbidden or ServiceUnavailable."""
    await asyncio.to_thread(permitted_directory, config, tenant, command.location)
    skills = await load_skills(catalog, tenant, command.location)
    if command.agent is not None:
        skills = permitted_skills(skills, agent_rules(config, command.agent))
    return Skills(skills=tuple(map(describe, skills)))


async def load_skills(
    catalog: SkillCatalog, tenant: TenantId, location: LocationRef
) -> tuple[Skill, ...]:
    """All skills of a location, by name. Raises ServiceUnavailable."""
    await catalog.refresh()
    try:
        return await asyncio.to_thread(catalog.load, tenant, location)
    except (OSError, Unreadable) as error:
        reason = f"The skills cannot be read: {error}"
        raise ServiceUnavailable(reason, service="skill.list") from error


def permitted_skills(
    skills: tuple[Skill, ...], rules: tuple[PermissionRule, ...] | None
) -> tuple[Skill, ...]:
    """The skills that the rules of an agent do not deny. An unknown agent may load none."""
    if rules is None:
        return ()
    return tuple(skill for skill in skills if effect(rules, ACTION, skill.name) != "deny")


def describe(skill: Skill) -> SkillInfo:
    """The skill as clients see it."""
    return SkillInfo(
        name=skill.name,
        description=skill.description,
        slash=skill.slash or None,
        location="" if skill.path is None else printable_path(skill.path),
        content=skill.content,
    )
