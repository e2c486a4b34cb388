"""`skill.list`: the skills of a location, as clients see them."""

from pathlib import Path

import pytest

from fairlead_schema.commands.location_catalog import ListSkills
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_tools.context.web_pages import WebClient
from fairlead_tools.skills.catalog import BUILT_IN, SkillCatalog
from fairlead_tools.skills.skill_list import list_skills

SKILL = "---\nname: deploy\ndescription: how to deploy\nslash: true\n---\nRun the pipeline."


def configure(root: Path) -> Config:
    deny = {"action": "skill", "resource": "deploy", "effect": "deny"}
    return Config.model_validate(
        {
            "skills": {"config_directory": None},
            "location": {"roots": [str(root)]},
            "agent": {"careful": {"permissions": [deny]}},
        }
    )


async def test_skills_are_listed_with_their_content_and_their_file(tmp_path: Path) -> None:
    file = tmp_path / ".fairlead/skills/deploy/SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(SKILL)
    config = configure(tmp_path)
    catalog = SkillCatalog(config, WebClient(config.context))
    location = LocationRef(directory=str(tmp_path))

    everything = await list_skills(config, catalog, "default", ListSkills(location=location))
    permitted = await list_skills(
        config, catalog, "default", ListSkills(location=location, agent="careful")
    )

    built_in, deploy = everything.skills
    assert (built_in.name, built_in.location) == (BUILT_IN, "")
    assert deploy.wire() == {
        "name": "deploy",
        "description": "how to deploy",
        "slash": True,
        "location": str(file),
        "content": "Run the pipeline.",
    }
    assert [skill.name for skill in permitted.skills] == [BUILT_IN]


async def test_no_skill_is_listed_outside_the_roots(tmp_path: Path) -> None:
    config = configure(tmp_path / "inside")
    catalog = SkillCatalog(config, WebClient(config.context))
    command = ListSkills(location=LocationRef(directory=str(tmp_path)))

    with pytest.raises(InvalidRequest, match="outside the configured roots"):
        await list_skills(config, catalog, "default", command)
