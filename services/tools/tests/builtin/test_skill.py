"""The `skill` tool: the skills that an agent can load, and the text for the model."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fairlead_schema.events import PermissionReplied
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import Effect
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import TextContent
from fairlead_service.config.configuration import Config
from fairlead_session.calls.lifecycle import Succeeded
from fairlead_session.people.permission import Need
from fairlead_tools.builtin import skill
from fairlead_tools.calls.permission import agent_rules
from fairlead_tools.calls.tool_run import ToolRun
from fairlead_tools.context.sources import skills
from fairlead_tools.context.web_pages import WebClient
from fairlead_tools.registry.registry import PreparedCall
from fairlead_tools.registry.tool import CallContext, CallFailed, Tool
from fairlead_tools.skills.catalog import BUILT_IN, SkillCatalog, builtin_skill
from services.tools.tests.calls.test_permission import asks, config_with, rule, serve
from services.tools.tests.conftest import Harness


def tool(**changes: Any) -> Tool:  # noqa: ANN401
    values = {
        "skills": {"config_directory": None, "sources": ["s"]},
        "location": {"roots": ["/"]},
        **changes,
    }
    config = Config.model_validate(values)
    return skill.tool(config, SkillCatalog(config, WebClient(config.context)))


def context(place: Path, agent: str = "build") -> CallContext:
    return CallContext(
        at=Address("default", "ses_1"),
        location=LocationRef(directory=str(place)),
        agent=agent,
        assistant_message_id="msg_a",
        call_id="call_1",
        worker="wkr_a",
    )


async def load_skill(skill_tool: Tool, name: str, place: Path, agent: str = "build") -> str | None:
    """The text for the model, or None when the call failed."""
    call = PreparedCall(skill_tool, skill_tool.input.model_validate({"name": name}))
    outcome = await ToolRun(call, context(place, agent)).result()
    if not isinstance(outcome, Succeeded):
        assert outcome.message == f"Unable to load skill {name}"  # type: ignore[union-attr]
        return None
    (content,) = outcome.content
    assert isinstance(content, TextContent)
    return content.text


def nested_skill(place: Path, files: int = 0) -> Path:
    home = place / "s" / "deep"
    (home / "ref").mkdir(parents=True)
    (home / "SKILL.md").write_text("---\nname: deep\ndescription: d\n---\nDo this.")
    for at in range(files):
        (home / "ref" / f"{at:02}.txt").touch()
    return home


async def test_a_skill_is_its_content_its_directory_and_the_files_beside_it(tmp_path: Path) -> None:
    """L-73: the list has the first ten files by name, with hidden files and without SKILL.md."""
    home = nested_skill(tmp_path, files=12)
    (home / ".hidden").touch()

    text = await load_skill(tool(), "deep", tmp_path)

    assert text is not None
    lines = text.splitlines()
    assert lines[:3] == ["# Skill: deep", "", "Do this."]
    assert lines[4] == f"Relative paths in this skill start at {home}"
    files = [line.removeprefix("- ") for line in lines[6:]]
    assert files == [str(home / ".hidden"), *(str(home / "ref" / f"{n:02}.txt") for n in range(9))]


async def test_a_flat_skill_has_neither_directory_nor_files(tmp_path: Path) -> None:
    """L-73: files beside it belong to other skills; a skill without description loads too."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "flat.md").write_text("Do that.")
    (tmp_path / "s" / "other.txt").touch()

    assert await load_skill(tool(), "flat", tmp_path) == "# Skill: flat\n\nDo that."


async def test_the_built_in_skill_can_be_loaded(tmp_path: Path) -> None:
    """M-29, L-73: the built-in skill has no directory."""
    text = await load_skill(tool(), BUILT_IN, tmp_path)

    assert text is not None
    assert "Relative paths" not in text


DENIED = {
    "agent": {"build": {"permissions": [{"action": "skill", "resource": "d*", "effect": "deny"}]}}
}


async def test_what_is_unknown_denied_or_unreadable_cannot_be_loaded(tmp_path: Path) -> None:
    """L-71, F-48: the error is the same in all cases, so a denial reveals nothing."""
    home = nested_skill(tmp_path)

    assert await load_skill(tool(), "deep", tmp_path) is not None
    assert await load_skill(tool(), "nothing", tmp_path) is None
    assert await load_skill(tool(**DENIED), "deep", tmp_path) is None
    assert await load_skill(tool(), "deep", tmp_path, "stranger") is None
    assert await load_skill(tool(), "deep", Path("/" + "x" * 300)) is None
    (home / "SKILL.md").write_bytes(b"\xff")
    assert await load_skill(tool(), "deep", tmp_path) is None


async def test_permission_is_asked_for_each_name(tmp_path: Path) -> None:
    """L-72: an approval for always covers this skill only."""
    nested_skill(tmp_path)
    skill_tool = tool()

    needs = await skill_tool.required_permissions(
        skill_tool.input.model_validate({"name": "deep"}), context(tmp_path)
    )

    assert needs == (Need("skill", resources=("deep",), save=("deep",)),)
    assert skill_tool.permission == "skill"


@pytest.mark.parametrize(("name", "changes"), [("nothing", {}), ("deep", DENIED)])
async def test_nobody_is_asked_about_what_cannot_be_loaded(
    tmp_path: Path, name: str, changes: dict[str, Any]
) -> None:
    """L-71, L-72: the refusal precedes the question."""
    nested_skill(tmp_path)
    skill_tool = tool(**changes)

    with pytest.raises(CallFailed, match=f"Unable to load skill {name}"):
        await skill_tool.required_permissions(
            skill_tool.input.model_validate({"name": name}), context(tmp_path)
        )


@pytest.mark.parametrize("fields", [{}, {"name": ""}, {"name": 3}, {"name": "a", "more": 1}])
def test_what_is_no_question_is_refused(fields: dict[str, Any]) -> None:
    """L-71: invalid input is refused before any lookup."""
    with pytest.raises(ValidationError):
        tool().input.model_validate(fields)


@pytest.mark.parametrize("whose", ["everybody", "agent"])
@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
async def test_the_merged_rules_decide_about_each_skill(
    harness: Harness, whose: str, effect: Effect
) -> None:
    """L-71, L-72, M-24: a worker applies the rules for all agents and those of the agent."""
    skill_rule = rule("skill", BUILT_IN, effect)
    agent = {"permissions": [skill_rule.model_dump()] if whose == "agent" else []}
    config = config_with(*([skill_rule] if whose == "everybody" else []), build=agent)
    skill_tool = skill.tool(config, SkillCatalog(config, WebClient(config.context)))
    harness.registry.register(skill_tool)
    await harness.call(skill_tool, name=BUILT_IN)

    settlements = await serve(harness, config)

    requests = await asks(harness)
    if effect == "ask":
        assert settlements == []
        assert (requests[0].request.action, requests[0].request.resources) == ("skill", (BUILT_IN,))
        assert requests[0].request.save == (BUILT_IN,)
        await harness.write(PermissionReplied(request_id=requests[0].request.id, reply="once"))
        await harness.put()
        settlements = await serve(harness, config, "wkr_b")
    assert len(requests) == (effect == "ask")
    (settlement,) = settlements
    assert (settlement == f"Unable to load skill {BUILT_IN}") is (effect == "deny")
    guidance = skills.observe((builtin_skill(),), agent_rules(config, "build"))
    assert guidance is not None
    assert (BUILT_IN in guidance.baseline) is (effect != "deny")
