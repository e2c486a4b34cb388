"""Reverts and file snapshots of a drain: the order of the log and of the files."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_runner.drain.revert_server import UNREACHABLE
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema import subjects
from fairlead_schema.events import (
    RevertBegun,
    RevertCleared,
    RevertFailed,
    RevertRequested,
    RevertStaged,
    StepEnded,
    StepStarted,
)
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_schema.tools.request import ToolInfo
from fairlead_session.revert.plan import NO_SNAPSHOT
from services.runner.tests.conftest import (
    CREATED,
    World,
    admitted,
    run_consumer,
    text_reply,
    wait_until,
)
from services.runner.tests.tool_calls import (
    READ,
    WRITE,
    call_reply,
    offer_tool,
    tool_succeeded,
    wait_for_event,
)

T1, T2, T3 = "1" * 40, "2" * 40, "3" * 40
STAGE = RevertRequested(action="stage", message_id="msg_1")
Act = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class Files:
    """The tools service: what it is asked about files, and what it answers."""

    def __init__(self, world: World) -> None:
        assert isinstance(world.eventlog.requests, MemoryRequests)
        self._answerers = world.eventlog.requests.answerers
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def answer(self, act: str, *answers: dict[str, Any] | Act) -> None:
        """Give these answers in turn; the last one for ever."""
        left = list(answers)

        async def answer(body: bytes) -> bytes:
            question = json.loads(body)
            self.asked.append((act, question))
            next_ = left.pop(0) if len(left) > 1 else left[0]
            data = next_ if isinstance(next_, dict) else await next_(question)
            return json.dumps({"data": data}).encode()

        self._answerers[subjects.file_snapshot("default", act)] = answer

    def acts(self) -> list[str]:
        return [act for act, _question in self.asked]


@pytest.fixture
async def files(world: World) -> Files:
    await world.eventlog.status.finalise(LEVEL_NEWEST)
    return Files(world)


async def run_step_with_call(world: World, files: Files, tool: ToolInfo) -> None:
    """A session whose first step made a call."""
    offer_tool(world, tool)
    changed = {"snapshot": T2, "files": ["a.txt"]}
    after = (changed,) if tool.retry == "once" else ()
    files.answer("capture", {"snapshot": T1}, *after, {"snapshot": T2})
    world.provider.replies.extend([call_reply("c1", tool=tool.name), text_reply("done")])
    await world.write(CREATED, admitted("msg_1"))
    draining = asyncio.create_task(world.drain())
    called = await wait_for_event(world, "tool.called")
    await world.write(tool_succeeded(called))
    await draining


@pytest.mark.parametrize(
    ("tool", "end", "asked"), [(WRITE, (T2, ("a.txt",)), 3), (READ, (T1, ()), 2)]
)
async def test_steps_carry_the_snapshots_around_them(
    world: World, files: Files, tool: ToolInfo, end: tuple[str, tuple[str, ...]], asked: int
) -> None:
    """D-36: a step that may have changed files ends with a new snapshot, any other as it began."""
    await run_step_with_call(world, files, tool)

    events = await world.events()
    starts = [event.snapshot for event in events if isinstance(event, StepStarted)]
    ends = [(event.snapshot, event.files) for event in events if isinstance(event, StepEnded)]
    assert starts == [T1, T2]
    assert ends == [end, (T2, ())]
    assert len(files.asked) == asked


async def test_a_capture_that_fails_costs_nothing_but_itself(world: World, files: Files) -> None:
    """N-12: the step goes on without a snapshot, and the location is not asked again at once."""
    files.answer("capture", {"unavailable": "no git"})
    await world.write(CREATED)
    async with run_consumer(WakeConsumer(world.context())):
        for id_ in ("msg_2", "msg_3"):
            await world.write(admitted(id_))
            await world.wake()
            await wait_until(lambda: not world.wakes)

    steps = [event for event in await world.events() if isinstance(event, StepStarted | StepEnded)]
    assert [step.snapshot for step in steps] == [None] * 4
    assert files.acts() == ["capture"]


async def test_snapshots_can_be_off(world: World, files: Files) -> None:
    """N-12"""
    files.answer("capture", {"snapshot": T1})
    world.config["location"] = {"snapshots": False}
    await world.write(CREATED, admitted("msg_1"))
    await world.drain()

    assert files.asked == []


async def test_the_provider_is_asked_before_the_snapshot_is_there(
    world: World, files: Files
) -> None:
    """The first byte of the provider does not wait for a snapshot; the start of the step does."""
    asked = asyncio.Event()

    async def slow(_question: dict[str, Any]) -> dict[str, Any]:
        await asked.wait()
        return {"snapshot": T1}

    async def reply() -> Any:  # noqa: ANN401
        asked.set()
        return text_reply("ok")

    files.answer("capture", slow)
    world.provider.replies.append(reply)
    await world.write(CREATED, admitted("msg_1"))
    await world.drain()

    starts = [event.snapshot for event in await world.events() if isinstance(event, StepStarted)]
    assert starts == [T1]


async def stage(world: World, request: RevertRequested = STAGE) -> list[str]:
    """Ask for a revert, drain, and return the types of the events since."""
    await world.write(request)
    seen = len(await world.types())
    await world.drain()
    return await world.types(after=seen)


async def changed_session(world: World, files: Files) -> None:
    """A session at rest with one step that changed files, and answers for a revert."""
    files.answer("prepare", {"original": T3, "target": T1})
    files.answer("restore", {"diff": "-x", "files": []})
    await run_step_with_call(world, files, WRITE)


async def test_the_intent_is_in_the_log_before_a_file_changes(world: World, files: Files) -> None:
    """N-02, N-06: prepare, write what the files will be, change them, write what was changed."""
    await changed_session(world, files)
    log_at_restore: list[str] = []

    async def restore(_question: dict[str, Any]) -> dict[str, Any]:
        log_at_restore.extend(await world.types())
        return {"diff": "-x", "files": []}

    files.answer("restore", restore)

    types = await stage(world)

    assert log_at_restore[-1] == "revert.begun"
    assert types == ["execution.claimed", "revert.begun", "revert.staged", "execution.released"]
    (_act, question) = files.asked[-1]
    assert (question["original"], question["before"], question["target"]) == (T3, T3, T1)
    state = RevertState(message_id="msg_1", snapshot=T3, diff="-x", files=())
    assert [event for event in await world.events() if isinstance(event, RevertStaged)] == [
        RevertStaged(revert=state)
    ]


async def test_a_restore_that_began_is_finished_by_the_next_runner(
    world: World, files: Files
) -> None:
    """A runner died after the intent: nothing is prepared again, the same trees are restored."""
    await changed_session(world, files)
    await world.write(STAGE, RevertBegun(original=T3, target=T1))
    files.asked.clear()

    await world.drain("run_b")

    assert files.acts() == ["restore"]
    assert (await world.types())[-2:] == ["revert.staged", "execution.released"]


async def test_a_restore_waits_for_a_tools_service(world: World, files: Files) -> None:
    """Once files may have changed, only the end of the restore ends the request."""
    await changed_session(world, files)
    files.answer("restore", {"refused": "busy", "again": True}, {"files": []})

    types = await stage(world)

    assert types[-1] == "execution.released"
    session = await world.session()
    assert session.execution.rested == "context-unavailable"
    assert session.revert.begun is not None
    await world.drain()
    assert (await world.session()).revert.requested is None


async def test_without_a_tools_service_nothing_begins(world: World, files: Files) -> None:
    await changed_session(world, files)
    world.answer(None)

    await stage(world)

    failed = [event for event in await world.events() if isinstance(event, RevertFailed)]
    assert failed == [RevertFailed(reason=UNREACHABLE)]


async def test_a_step_without_a_snapshot_is_a_refusal(world: World, files: Files) -> None:
    """N-12: without git a revert of files is refused, and the boundary alone can move."""
    offer_tool(world)
    world.provider.replies.extend([call_reply("c1"), text_reply("done")])
    await world.write(CREATED, admitted("msg_1"))
    draining = asyncio.create_task(world.drain())
    await world.write(tool_succeeded(await wait_for_event(world, "tool.called")))
    await draining

    await stage(world)
    alone = RevertRequested(action="stage", message_id="msg_1", files=False)
    await stage(world, alone)

    ends = [
        event for event in await world.events() if isinstance(event, RevertFailed | RevertStaged)
    ]
    state = RevertState(message_id="msg_1", files=())
    assert ends == [RevertFailed(reason=NO_SNAPSHOT), RevertStaged(revert=state)]
    assert "prepare" not in files.acts()


async def test_a_clear_restores_the_original_files(world: World, files: Files) -> None:
    """N-07"""
    await changed_session(world, files)
    await stage(world)
    files.answer("prepare", {"original": T3, "target": T3})

    await stage(world, RevertRequested(action="clear"))

    question = files.asked[-1][1]
    assert (question["before"], question["target"]) == (T1, T3)
    assert RevertCleared() in await world.events()
    prepared = [question for act, question in files.asked if act == "prepare"]
    assert prepared[-1]["original"] == T3, "the first tree is kept"
    assert "steps" not in prepared[-1] or prepared[-1]["steps"] == []


async def test_a_prompt_after_a_stage_commits_it(world: World, files: Files) -> None:
    """N-08, N-10: the model sees the boundary and the new prompt, and nothing between."""
    await changed_session(world, files)
    await stage(world)

    await world.prompt("msg_2", "something else")

    session = await world.session()
    assert session.profile is not None
    assert session.profile.revert is None
    roles = [line.message.id for line in session.transcript.lines]
    assert roles[:2] == ["msg_1", "msg_2"]
    assert [text for role, text in world.provider.messages() if role == "user"] == [
        "hello",
        "something else",
    ]
