"""What a person may name in a prompt: commands, skills and references."""

from typing import Annotated

from pydantic import Field

from fairlead_schema.catalog import ModelRef
from fairlead_schema.ids import DEFAULT_TENANT, TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import InputModel, Model


class SkillInfo(Model):
    """A skill as clients see it. `location` is its file; the built-in skill has none."""

    name: str
    description: str | None = None
    slash: bool | None = None
    location: str = ""
    content: str


class CommandInfo(Model):
    """A slash command: configured, or a skill whose front matter says `slash: true`."""

    name: str
    template: str
    description: str | None = None
    agent: str | None = None
    model: ModelRef | None = None
    skill: bool | None = None
    """Whether the command is a skill."""


class ReferenceInfo(Model):
    """A configured reference. A text is not shown: only a mention brings it into a prompt."""

    name: str
    path: str | None = None
    description: str | None = None


class ListSkills(InputModel):
    """`skill.list`: the skills of a location. With an agent, only those that it may load."""

    location: LocationRef
    agent: str | None = None


class Skills(Model):
    """The skills of a location, by name."""

    skills: tuple[SkillInfo, ...]


class LookUpNames(Model):
    """Asks the tools service of a location what the names in a prompt lead to."""

    location: LocationRef
    tenant: TenantId = DEFAULT_TENANT
    agent: str | None = None
    paths: Annotated[tuple[str, ...], Field(max_length=256)] = ()
    skill: str | None = None


class FoundPath(Model):
    """A file or a directory of the location. The URI of a directory ends in a slash."""

    name: str
    uri: str


class NamesFound(Model):
    """What the names lead to. A name that leads nowhere is left out."""

    paths: tuple[FoundPath, ...] = ()
    skill: SkillInfo | None = None
