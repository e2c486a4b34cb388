"""What the names in a prompt lead to at a location: files, directories, a skill, or nothing."""

from pathlib import Path

from fairlead_schema.commands.location_catalog import LookUpNames
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_tools.context.look_up import look_up_names
from fairlead_tools.context.web_pages import WebClient
from fairlead_tools.skills.catalog import SkillCatalog

SKILL = "---\nname: deploy\nslash: true\n---\nRun $1."
DENIED = {"action": "read", "resource": "secret/*", "effect": "deny"}


async def look_up(root: Path, **question: object) -> tuple[dict[str, str], str | None]:
    config = Config.model_validate(
        {
            "skills": {"config_directory": None},
            "location": {"roots": [str(root)]},
            "agent": {"build": {"permissions": [DENIED]}},
        }
    )
    catalog = SkillCatalog(config, WebClient(config.context))
    asked = LookUpNames.model_validate(
        {"location": LocationRef(directory=str(root / "work")), "agent": "build", **question}
    )
    found = await look_up_names(config, catalog, asked)
    skill = None if found.skill is None else found.skill.content
    return {path.name: path.uri for path in found.paths}, skill


async def test_paths_inside_the_location_are_found(tmp_path: Path) -> None:
    """P-22: a directory has a slash, and a path that leads out of the location names nothing."""
    work = tmp_path / "work"
    (work / "docs").mkdir(parents=True)
    (work / "secret").mkdir()
    (work / "a b.txt").write_text("x")
    (work / "secret/key").write_text("x")
    (tmp_path / "outside").write_text("x")
    (work / "link").symlink_to(tmp_path / "outside")

    names = (
        "a b.txt",
        "docs",
        "gone",
        "../outside",
        "link",
        "secret/key",
        "bad\0name",
        "/etc/hosts",
    )
    found, _ = await look_up(tmp_path, paths=names)

    assert found == {
        "a b.txt": (work / "a b.txt").as_uri(),
        "docs": f"{(work / 'docs').as_uri()}/",
    }


async def test_a_skill_is_found_by_its_name(tmp_path: Path) -> None:
    skills = tmp_path / "work/.fairlead/skills"
    skills.mkdir(parents=True)
    (skills / "deploy.md").write_text(SKILL)

    assert await look_up(tmp_path, skill="deploy") == ({}, "Run $1.")
    assert await look_up(tmp_path, skill="other") == ({}, None)
    assert await look_up(tmp_path, skill="deploy", agent="nobody") == ({}, None)


async def test_nothing_is_found_outside_the_roots(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a").write_text("x")
    elsewhere = LocationRef(directory="/")

    assert await look_up(tmp_path, paths=("etc/hosts",), location=elsewhere) == ({}, None)
