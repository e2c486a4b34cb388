"""The tools for people: `todowrite` and `question`."""

import json

import pytest

from fairlead_eventlog.ports import START
from fairlead_schema.events import QuestionAsked, TodoUpdated, ToolFailed, ToolSucceeded
from fairlead_schema.tools.content import TextContent
from fairlead_service.config.configuration import Config
from fairlead_tools.app import build_registry
from fairlead_tools.builtin import builtins, question, todowrite
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.worker import ToolWorker
from fairlead_tools.settings import ToolsSettings
from services.tools.tests.conftest import AT, Harness, run_worker, wait_until

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


async def serve_calls(harness: Harness, config: Config | None = None) -> list[str]:
    rules = (config or Config()).rules
    worker = ToolWorker(
        "wkr_a", harness.eventlog, harness.registry, harness.settings, CallPolicy(rules)
    )
    harness.liveness.alive.add("wkr_a")
    async with run_worker(worker):
        await wait_until(lambda: not harness.jobs)
    return await harness.settlements()


def test_built_in_tools_may_be_switched_off() -> None:
    """J-10: a model cannot call a tool that is not registered."""
    names = [tool.name for tool in builtins(Config())]
    off = Config.model_validate({"tools": {"builtin": False}})

    assert {"todowrite", "question"} <= set(names)
    assert builtins(off) == ()
    assert [tool.name for tool in build_registry(ToolsSettings(Config())).catalog().tools] == names


async def test_the_list_is_replaced_in_the_commit_that_settles_the_call(harness: Harness) -> None:
    """L-67, N-23: one commit holds the whole list in its order and the settlement."""
    tool = todowrite.tool()
    harness.registry.register(tool)
    await harness.call(tool, todos=TODOS)
    await serve_calls(harness)

    last = (await harness.log.read(AT, after=START)).commits[-1].commit
    *_start, update, settlement = (recorded.event for recorded in last.events)
    assert isinstance(update, TodoUpdated)
    assert [item.model_dump() for item in update.todos] == TODOS
    assert isinstance(settlement, ToolSucceeded)
    (text,) = settlement.content
    assert isinstance(text, TextContent)
    assert json.loads(text.text) == TODOS
    assert settlement.structured == {"todos": TODOS}


async def test_a_denied_list_changes_nothing(harness: Harness) -> None:
    """L-67: the earlier list stays."""
    tool = todowrite.tool()
    harness.registry.register(tool)
    await harness.call(tool, todos=TODOS)

    assert (await serve_calls(harness, DENYING))[0].startswith("Permission denied: todowrite")
    assert not any(isinstance(event, TodoUpdated) for event in await harness.events())


@pytest.mark.parametrize(
    "todos",
    [
        [{"content": "x"}],
        [{"content": "x", "status": "maybe", "priority": "low"}],
        "none",
        [{"content": 3, "status": "pending", "priority": "low"}],
    ],
)
async def test_what_is_no_list_of_tasks_is_refused(harness: Harness, todos: object) -> None:
    """J-17, L-67: invalid input leaves the list unchanged."""
    tool = todowrite.tool()
    harness.registry.register(tool)
    await harness.call(tool, todos=todos)

    assert (await serve_calls(harness))[0].startswith("Invalid tool input")


async def test_a_question_waits_for_a_person_and_for_nobody_else(harness: Harness) -> None:
    """L-68, N-24: the question is a durable event with an id, and no worker starts the call."""
    tool = question.tool()
    harness.registry.register(tool)
    fields = {
        "question": "Which colour?",
        "header": "Colour",
        "options": [{"label": "red", "description": "like fire"}],
        "multiple": True,
    }
    await harness.call(tool, questions=[fields])

    assert await serve_calls(harness) == []

    (event,) = [event for event in await harness.events() if isinstance(event, QuestionAsked)]
    request = event.request
    assert request.id.startswith("que_")
    assert request.tool is not None
    assert (request.tool.message_id, request.tool.call_id) == ("msg_a", "call_1")
    assert request.questions[0].wire() == fields
    assert await harness.starts() == []


async def test_a_denied_question_asks_nobody(harness: Harness) -> None:
    """L-68: the model reads the denial."""
    tool = question.tool()
    harness.registry.register(tool)
    await harness.call(tool, questions=[{"question": "Why?"}])

    assert (await serve_calls(harness, DENYING))[0].startswith("Permission denied: question")
    assert not any(isinstance(event, QuestionAsked) for event in await harness.events())


async def test_a_question_comes_once_however_often_its_request_does(harness: Harness) -> None:
    """N-24: a second worker does not ask again after the first one died."""
    tool = question.tool()
    harness.registry.register(tool)
    await harness.call(tool, questions=[{"question": "Why?"}])
    await serve_calls(harness)
    await harness.put()
    await serve_calls(harness)

    events = [event for event in await harness.events() if isinstance(event, QuestionAsked)]
    assert len(events) == 1


@pytest.mark.parametrize("questions", [[], [{}], [{"question": ""}], "why"])
async def test_what_is_no_question_is_refused(harness: Harness, questions: object) -> None:
    """J-17, L-68: nobody sees an invalid question."""
    tool = question.tool()
    harness.registry.register(tool)
    await harness.call(tool, questions=questions)

    assert (await serve_calls(harness))[0].startswith("Invalid tool input")
    assert any(isinstance(event, ToolFailed) for event in await harness.events())
