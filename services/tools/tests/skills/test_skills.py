"""Skills in directories: where they lie, their names, and which agents see them."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead_schema.location import LocationRef
from fairlead_schema.permission import PermissionRule
from fairlead_service.config.configuration import Config
from fairlead_tools.context.sources.skills import LEAD, NONE, observe
from fairlead_tools.context.web_pages import WebClient
from fairlead_tools.skills.catalog import BUILT_IN, SkillCatalog
from fairlead_tools.skills.front_matter import InvalidFrontMatter, split
from fairlead_tools.skills.skill import InvalidSkill, Skill, parse

SEVERAL = (
    Skill("b", "body of b", "when b"),
    Skill("a", "body of a", "when a"),
    Skill("quiet", "body of quiet"),
)


def rule(effect: Any, resource: str = "*", action: str = "skill") -> PermissionRule:  # noqa: ANN401
    return PermissionRule(action=action, resource=resource, effect=effect)


def write(path: Path, name: str | None = None, description: str | None = "d") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = {"name": name, "description": description}
    lines = [f"{key}: {value}" for key, value in fields.items() if value is not None]
    path.write_text("\n".join(["---", *lines, "---", f"body of {path}"]))
    return path


def catalog(**skills: Any) -> SkillCatalog:  # noqa: ANN401
    config = Config.model_validate(
        {"skills": {"config_directory": None, **skills}, "location": {"roots": ["/"]}}
    )
    return SkillCatalog(config, WebClient(config.context))


def skill_paths(skill_catalog: SkillCatalog, at: Path) -> dict[str, Path | None]:
    skills = skill_catalog.load("default", LocationRef(directory=str(at)))
    return {skill.name: skill.path for skill in skills if skill.name != BUILT_IN}


def test_a_directory_gives_its_markdown_files_and_every_nested_skill(tmp_path: Path) -> None:
    """M-14: a top-level file may use its file name; a nested skill states its name."""
    skills = tmp_path / "skills"
    write(skills / "flat.md")
    write(skills / "called.md", "other")
    write(skills / "deep" / "er" / "SKILL.md", "deep")
    write(skills / "nameless" / "SKILL.md")
    write(skills / "deep" / "notes.md", "never")
    (skills / "readme.txt").write_text("never")

    assert skill_paths(catalog(sources=(str(skills),)), tmp_path) == {
        "flat": skills / "flat.md",
        "other": skills / "called.md",
        "deep": skills / "deep" / "er" / "SKILL.md",
    }


def test_later_sources_win_and_a_source_twice_is_one(tmp_path: Path) -> None:
    """M-13, M-17: the order is operator, project from its root down, configured sources."""
    own, repo = tmp_path / "own", tmp_path / "repo"
    here = repo / "src"
    here.mkdir(parents=True)
    (repo / ".git").mkdir()
    for name in ("one", "two", "three", "four"):
        write(own / "skill" / f"{name}.md")
    for name in ("two", "three", "four"):
        write(repo / ".fairlead" / "skills" / f"{name}.md")
    for name in ("three", "four"):
        write(here / ".fairlead" / "skill" / f"{name}.md")
    write(here / "more" / "four.md")
    skill_catalog = catalog(config_directory=str(own), sources=("more", "more"))

    assert skill_paths(skill_catalog, here) == {
        "one": own / "skill" / "one.md",
        "two": repo / ".fairlead" / "skills" / "two.md",
        "three": here / ".fairlead" / "skill" / "three.md",
        "four": here / "more" / "four.md",
    }
    assert set(skill_paths(catalog(project=False, config_directory=str(own)), here)) == {
        "one",
        "two",
        "three",
        "four",
    }


def test_a_source_may_be_relative_absolute_or_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M-17: a missing source is empty."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path / "home" / "mine" / "a.md")
    write(tmp_path / "w" / "rel" / "b.md")
    write(tmp_path / "abs" / "c.md")
    skill_catalog = catalog(sources=("~/mine", "rel", str(tmp_path / "abs"), "/nowhere"))

    assert set(skill_paths(skill_catalog, tmp_path / "w")) == {"a", "b", "c"}


def test_a_change_on_disk_is_seen_without_a_restart(tmp_path: Path) -> None:
    """M-16: the catalogue keeps nothing per location; unchanged files are not read again."""
    skill_catalog = catalog(sources=("s",))
    write(tmp_path / "s" / "a.md")
    assert set(skill_paths(skill_catalog, tmp_path)) == {"a"}
    write(tmp_path / "s" / "b.md")
    (tmp_path / "s" / "a.md").unlink()

    assert set(skill_paths(skill_catalog, tmp_path)) == {"b"}


def write_bad_files(place: Path) -> Iterator[Path]:
    (place / "binary.md").write_bytes(b"\0\1")
    (place / "latin.md").write_bytes(b"\xe9")
    (place / "open.md").write_text("---\nname: x\n")
    (place / "noise.md").write_text("---\nnot a field\n---\n")
    (place / "evil.md").write_text("---\nname: ../evil\n---\n")
    (place / "link.md").symlink_to("/etc/hostname")
    (place / "loop.md").symlink_to("loop.md")
    (place / "huge.md").write_text("x" * 300_000)
    yield from place.iterdir()


def test_files_that_are_no_skills_are_left_out(tmp_path: Path) -> None:
    """M-15: one bad file does not affect the others."""
    skills = tmp_path / "s"
    write(skills / "good.md")
    assert len(list(write_bad_files(skills))) == 9

    assert set(skill_paths(catalog(sources=("s",)), tmp_path)) == {"good"}


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("no front matter", {}, "no front matter"),
        ("---\nname: a\n---\n\nbody\n", {"name": "a"}, "body"),
        ("---\ndescription: use: when needed\n---", {"description": "use: when needed"}, ""),
        ("---\nname: 'it''s'\n---\nx", {"name": "it's"}, "x"),
        ('---\nname: "a\\tb"\n---\nx', {"name": "a\tb"}, "x"),
        ('---\nname: "a\\qb"\n---\nx', {"name": "a\\qb"}, "x"),
        ("---\ndescription: >\n  one\n  two\n---\nx", {"description": "one two"}, "x"),
        ("---\ndescription: |\n  one\n  two\n---\nx", {"description": "one\ntwo"}, "x"),
        ("---\ndescription: one\n  two\n---\nx", {"description": "one two"}, "x"),
        ("---\n# said\nname: a\nmore:\n- x\n  y: z\n---\nx", {"name": "a", "more": "y: z"}, "x"),
        ("---\n---\nx", {}, "x"),
        ("", {}, ""),
    ],
)
def test_front_matter_is_read_leniently(text: str, fields: dict[str, str], body: str) -> None:
    """M-15: colons, quotes and folded lines are read; nested values are not."""
    assert split(text) == (fields, body)


@pytest.mark.parametrize("text", ["---\nname: a\n", "---\nnonsense\n---\n", "---\n{}\n---\n"])
def test_front_matter_that_is_none_is_refused(text: str) -> None:
    """M-15: such a file is no skill."""
    with pytest.raises(InvalidFrontMatter):
        split(text)
    with pytest.raises(InvalidSkill):
        parse(text, None, name="x")


def test_a_skill_says_its_name_its_description_and_whether_it_is_a_command() -> None:
    """M-15: a description is one line."""
    text = "---\nname: a\ndescription: |\n  one\n  two\nslash: True\n---\nbody"

    assert parse(text, None) == Skill("a", "body", "one two", slash=True)
    assert parse("body", None, name="b") == Skill("b", "body")


def test_the_product_explains_itself(tmp_path: Path) -> None:
    """M-29: every example in the built-in skill is a valid configuration."""
    (skill,) = catalog().load("default", LocationRef(directory=str(tmp_path)))

    assert skill.name == BUILT_IN
    assert skill.description
    assert skill.directory is None
    examples = re.findall(r"```toml\n(.*?)```", skill.content, re.DOTALL)
    assert Config.model_validate(tomllib.loads("\n".join(examples))).context.timezone


def test_guidance_lists_what_an_agent_may_load_by_name() -> None:
    """M-24, M-28: the list has names and descriptions; a skill without description is left out."""
    observation = observe(SEVERAL, ())

    assert observation is not None
    assert observation.baseline == f"{LEAD}\n- a: when a\n- b: when b"
    assert observation.value == [["a", "when a"], ["b", "when b"]]
    assert "body" not in f"{observation.baseline}{observation.update}"


def test_a_denied_skill_is_not_listed() -> None:
    """Q-17, M-24: a rule hides the skill; a skill that needs an ask is listed."""
    observation = observe(SEVERAL, (rule("allow"), rule("deny", "a"), rule("ask", "b")))

    assert observation is not None
    assert observation.value == [["b", "when b"]]


def test_denying_everything_takes_the_source_away_and_one_permission_brings_it_back() -> None:
    """M-25, M-26: the last rule for all skills counts, and then the last rule for each."""
    deny = rule("deny")
    back = observe(SEVERAL, (deny, rule("allow", "a")))
    again = observe(SEVERAL, (deny, rule("allow", "a"), rule("deny", "a")))

    assert observe(SEVERAL, (deny,)) is None
    assert observe(SEVERAL, (rule("deny", action="*"),)) is None
    assert back is not None
    assert back.value == [["a", "when a"]]
    assert again is not None
    assert again.value == []


def test_an_empty_list_says_so() -> None:
    """M-27: the agent may load skills, but none exist."""
    observation = observe((), ())

    assert observation is not None
    assert observation.baseline == f"{LEAD}\n{NONE}"


def test_an_agent_that_nobody_knows_gets_no_guidance() -> None:
    """F-48: an unknown agent has no permissions."""
    assert observe(SEVERAL, None) is None
