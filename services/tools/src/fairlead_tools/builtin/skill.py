"""`skill`: loads the instructions of one skill."""

import asyncio
import os
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import Json, TextContent, ToolContent
from fairlead_service.config.configuration import Config
from fairlead_session.people.permission import Need, effect
from fairlead_tools.calls.permission import agent_rules
from fairlead_tools.context.sources.files import Unreadable, printable_path
from fairlead_tools.context.sources.skills import ACTION
from fairlead_tools.registry.tool import CallContext, CallFailed, Tool
from fairlead_tools.skills.catalog import SkillCatalog
from fairlead_tools.skills.skill import SKILL, Skill

FILES_MAX: Final = 10
# How many files are listed before the first ten by name are taken.
LISTED_MAX: Final = 1000


class SkillInput(BaseModel):
    """The name of the skill."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=256, description="the skill's name, as listed")


class SkillOutput(BaseModel):
    """The skill and the files beside it."""

    name: str
    content: str
    directory: str | None = None
    files: tuple[str, ...] = ()


def tool(config: Config, catalog: SkillCatalog) -> Tool:
    """The tool for the skills of the location of each call."""
    return Tool(
        name="skill",
        description="Load the instructions of a skill by its name, as listed in the context.",
        input=SkillInput,
        output=SkillOutput,
        execute=partial(_execute, config, catalog),
        needs=partial(_needs, config, catalog),
        project=_project,
        action=ACTION,
        retry="pure",
    )


async def _needs(
    config: Config, catalog: SkillCatalog, request: SkillInput, context: CallContext
) -> tuple[Need, ...]:
    """The permission to load this skill."""
    await _load_skill(config, catalog, request, context)
    return (Need(ACTION, resources=(request.name,), save=(request.name,)),)


async def _execute(
    config: Config, catalog: SkillCatalog, request: SkillInput, context: CallContext
) -> SkillOutput:
    skill = await _load_skill(config, catalog, request, context)
    place = skill.directory
    return SkillOutput(
        name=skill.name,
        content=skill.content,
        directory=None if place is None else printable_path(place),
        files=() if place is None else await asyncio.to_thread(_beside, place),
    )


async def _load_skill(
    config: Config, catalog: SkillCatalog, request: SkillInput, context: CallContext
) -> Skill:
    """The requested skill. A denied skill looks like a missing one. Raises CallFailed."""
    rules = agent_rules(config, context.agent)
    if rules is None or effect(rules, ACTION, request.name) == "deny":
        raise _unable(request)
    try:
        skills = await asyncio.to_thread(catalog.load, context.at.tenant, context.location)
    except (OSError, Unreadable) as error:
        raise _unable(request) from error
    skill = next((skill for skill in skills if skill.name == request.name), None)
    if skill is None:
        raise _unable(request)
    return skill


def _unable(request: SkillInput) -> CallFailed:
    return CallFailed(f"Unable to load skill {request.name}")


def _beside(place: Path) -> tuple[str, ...]:
    """The first files of a skill by name, with hidden ones, without `SKILL.md` itself."""
    files = sorted(islice(_files(place), LISTED_MAX))
    return tuple(printable_path(path) for path in files if path != place / SKILL)[:FILES_MAX]


def _files(place: Path) -> Iterator[Path]:
    for here, _directories, names in os.walk(place):
        yield from (Path(here) / name for name in names)


def _project(output: Json) -> tuple[ToolContent, ...]:
    lines = [f"# Skill: {output['name']}", "", output["content"]]
    if output["directory"] is not None:
        lines += ["", f"Relative paths in this skill start at {output['directory']}"]
    if output["files"]:
        lines += ["Files beside it:", *(f"- {path}" for path in output["files"])]
    return (TextContent(text="\n".join(lines)),)
