"""The commands and references that clients may list: configured ones, and skills with a slash."""

from fairlead_schema.commands.location_catalog import CommandInfo, ReferenceInfo, SkillInfo
from fairlead_service.config.configuration import Config


def list_commands(config: Config, skills: tuple[SkillInfo, ...]) -> tuple[CommandInfo, ...]:
    """Every command by name. A configured command hides a skill with the same name."""
    by_name = {
        skill.name: CommandInfo(
            name=skill.name, template=skill.content, description=skill.description
        )
        for skill in skills
        if skill.slash
    }
    for name, command in config.command.items():
        by_name[name] = CommandInfo(
            name=name,
            template=command.template,
            description=command.description,
            agent=command.agent,
            model=command.model_ref(),
        )
    return tuple(by_name[name] for name in sorted(by_name))


def list_references(config: Config) -> tuple[ReferenceInfo, ...]:
    """Every reference by name."""
    return tuple(
        ReferenceInfo(name=name, path=reference.path, description=reference.description)
        for name, reference in sorted(config.reference.items())
    )
