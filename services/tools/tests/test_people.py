"""The tools that speak with people: `todowrite` and `question`."""

import json

import pytest

from fairlead_eventlog.ports import START
from fairlead_schema.events import QuestionAsked, TodoUpdated, ToolFailed, ToolSucceeded
from fairlead_schema.tools.content import TextContent
from fairlead_service.config.configuration import Config
from fairlead_tools.app import registry
from fairlead_tools.builtin import builtins, question, todowrite
from fairlead_tools.calls.worker import Execute
from fairlead_tools.settings import ToolsSettings
from services.tools.tests.conftest import AT, World, standing, until

TODOS = [
    {"content": "read", "status": "completed", "priority": "high"},
    {"content": "wríte", "status": "in_progress", "priority": "low"},
]
DENYING = Config.model_validate(
    {
        "permissions": [
            {"action": action, "resource": "*", "effect": "deny"}
            for action in ("todowrite", "question")
        ]
    }
)


async def served(world: World, config: Config | None = None) -> list[str]:
    rules = (config or Config()).rules
    worker = Execute("wkr_a", world.eventlog, world.registry, world.settings, rules)
    world.liveness.alive.add("wkr_a")
    async with standing(worker):
        await until(lambda: not world.jobs)
    return await world.settlements()


def test_built_in_tools_may_be_switched_off() -> None:
    """J-10: what is not registered cannot be called."""
    names = [tool.name for tool in builtins(Config())]
    off = Config.model_validate({"tools": {"builtin": False}})

    assert {"todowrite", "question"} <= set(names)
    assert builtins(off) == ()
    assert [one.name for one in registry(ToolsSettings(Config())).catalog().tools] == names


async def test_the_list_is_replaced_in_the_commit_that_settles_the_call(world: World) -> None:
    """L-67, N-23: whole, in its order, durable, exactly with the settlement."""
    made = todowrite.tool()
    world.registry.register(made)
    await world.call(made, todos=TODOS)
    await served(world)

    last = (await world.log.read(AT, after=START)).commits[-1].commit
    *_start, updated, settled = (recorded.event for recorded in last.events)
    assert isinstance(updated, TodoUpdated)
    assert [one.model_dump() for one in updated.todos] == TODOS
    assert isinstance(settled, ToolSucceeded)
    (text,) = settled.content
    assert isinstance(text, TextContent)
    assert json.loads(text.text) == TODOS
    assert settled.structured == {"todos": TODOS}


async def test_a_denied_list_changes_nothing(world: World) -> None:
    """L-67: the list before stays."""
    made = todowrite.tool()
    world.registry.register(made)
    await world.call(made, todos=TODOS)

    assert (await served(world, DENYING))[0].startswith("Permission denied: todowrite")
    assert not any(isinstance(event, TodoUpdated) for event in await world.events())


@pytest.mark.parametrize(
    "todos",
    [
        [{"content": "x"}],
        [{"content": "x", "status": "maybe", "priority": "low"}],
        "none",
        [{"content": 3, "status": "pending", "priority": "low"}],
    ],
)
async def test_what_is_no_list_of_tasks_is_refused(world: World, todos: object) -> None:
    """J-17, L-67: and the list stays as it was."""
    made = todowrite.tool()
    world.registry.register(made)
    await world.call(made, todos=todos)

    assert (await served(world))[0].startswith("Invalid tool input")


async def test_a_question_waits_for_a_person_and_for_nobody_else(world: World) -> None:
    """L-68, N-24: asked durably, under its own id; no worker begins the call."""
    made = question.tool()
    world.registry.register(made)
    asked = {
        "question": "Which colour?",
        "header": "Colour",
        "options": [{"label": "red", "description": "like fire"}],
        "multiple": True,
    }
    await world.call(made, questions=[asked])

    assert await served(world) == []

    (event,) = [event for event in await world.events() if isinstance(event, QuestionAsked)]
    request = event.request
    assert request.id.startswith("que_")
    assert request.tool is not None
    assert (request.tool.message_id, request.tool.call_id) == ("msg_a", "call_1")
    assert request.questions[0].wire() == asked
    assert await world.starts() == []


async def test_a_denied_question_asks_nobody(world: World) -> None:
    """L-68: and says so to the model."""
    made = question.tool()
    world.registry.register(made)
    await world.call(made, questions=[{"question": "Why?"}])

    assert (await served(world, DENYING))[0].startswith("Permission denied: question")
    assert not any(isinstance(event, QuestionAsked) for event in await world.events())


async def test_a_question_comes_once_however_often_its_request_does(world: World) -> None:
    """N-24: a worker that died after asking leaves nothing to ask again."""
    made = question.tool()
    world.registry.register(made)
    await world.call(made, questions=[{"question": "Why?"}])
    await served(world)
    await world.put()
    await served(world)

    asked = [event for event in await world.events() if isinstance(event, QuestionAsked)]
    assert len(asked) == 1


@pytest.mark.parametrize("questions", [[], [{}], [{"question": ""}], "why"])
async def test_what_is_no_question_is_refused(world: World, questions: object) -> None:
    """J-17, L-68: nobody is bothered with it."""
    made = question.tool()
    world.registry.register(made)
    await world.call(made, questions=questions)

    assert (await served(world))[0].startswith("Invalid tool input")
    assert any(isinstance(event, ToolFailed) for event in await world.events())
