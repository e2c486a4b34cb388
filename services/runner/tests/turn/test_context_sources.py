"""The question about a location, the session's own sources, and when a change reaches the model."""

import json
from typing import Any

import pytest

from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_eventlog.ports import CommitPage, StoredCommit
from fairlead_runner.metrics import BASELINE_BYTES, CONTEXT_UPDATES, EPOCHS
from fairlead_schema.catalog import ModelRef
from fairlead_schema.context import ObservedSource, SnapshotEntry, UnavailableSource
from fairlead_schema.events import (
    AgentSwitched,
    ContextInitialised,
    ContextSnapshotAdvanced,
    ContextUpdated,
    ModelSwitched,
    SessionCreated,
    SessionMoved,
    StepStarted,
    ToolCalled,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Commit, Draft, decode, encode, record
from fairlead_schema.tools.content import Executor
from fairlead_service import ids
from services.runner.tests.conftest import AT, DATE, SYSTEM, World, admitted, error_reply

DEEP = ModelRef(provider_id="acme", id="deep")
TOMORROW = ObservedSource(key="core/date", value=2, baseline="Day 2", update="Now day 2")


def guidance(agent: str | None) -> ObservedSource:
    return ObservedSource(
        key="core/skills",
        value=agent,
        baseline=f"skills of {agent}",
        update=f"now skills of {agent}",
    )


def note_questions(
    world: World, *sources: ObservedSource | UnavailableSource
) -> list[dict[str, Any]]:
    """Note each question; answer with these sources and the guidance of the agent in the question."""
    questions: list[dict[str, Any]] = []

    async def answer(body: bytes) -> bytes:
        questions.append(json.loads(body))
        observed = (*sources, guidance(questions[-1].get("agent")))
        return json.dumps(
            {"data": {"observations": [source.wire() for source in observed]}}
        ).encode()

    world.answer(answer)
    return questions


async def context_updates(world: World) -> list[str]:
    return [event.text for event in await world.events() if isinstance(event, ContextUpdated)]


async def take_turn(world: World, id_: str) -> None:
    await world.write(admitted(id_))
    await world.drain()


def add_deep_model(world: World) -> None:
    world.config["provider"]["acme"]["model"]["deep"] = {"id": "deep-1"}


async def test_a_model_switch_is_one_message_and_no_new_epoch(world: World) -> None:
    """Q-06, F-23, F-33: the baseline keeps its bytes; the location knows nothing of models."""
    add_deep_model(world)
    questions = note_questions(world, DATE)
    await take_turn(world, "msg_1")
    await world.write(ModelSwitched(message_id="msg_m", model=DEEP))

    await take_turn(world, "msg_2")

    assert await context_updates(world) == [
        "The model has changed: from here on you are running on the model acme/deep."
    ]
    assert world.provider.messages()[0] == world.provider.messages(0)[0]
    assert world.provider.requests[-1]["model"] == "deep-1"
    assert "deep" not in str(questions)
    types = await world.types()
    assert types.count("context.initialised") == 1
    assert "context.replaced" not in types


async def test_an_agent_switch_brings_its_guidance_as_a_message(world: World) -> None:
    """F-34: the baseline stays; the question names the agent of the turn."""
    world.config["agent"]["plan"] = {"system": "Plan."}
    questions = note_questions(world, DATE)
    await take_turn(world, "msg_1")
    await world.write(AgentSwitched(message_id="msg_g", agent="plan"))

    await take_turn(world, "msg_2")

    assert [question["agent"] for question in questions] == ["build", "plan"]
    assert await context_updates(world) == ["now skills of plan"]
    assert (await world.types()).count("context.initialised") == 1


@pytest.mark.parametrize(
    ("switch", "target"),
    [
        (AgentSwitched(message_id="msg_g", agent="plan"), ("plan", "fast")),
        (ModelSwitched(message_id="msg_g", model=DEEP), ("build", "deep")),
    ],
    ids=["agent", "model"],
)
async def test_agent_model_and_guidance_of_a_request_always_belong_together(
    world: World, switch: AgentSwitched | ModelSwitched, target: tuple[str, str]
) -> None:
    """F-35, F-36: a switch during the observation makes the runner prepare the boundary again.

    The log refuses what was prepared for another agent or model, so no request mixes the two.
    """
    add_deep_model(world)
    world.config["agent"]["plan"] = {"system": "Plan."}
    questions = 0

    async def answer(body: bytes) -> bytes:
        nonlocal questions
        questions += 1
        if questions == 1:
            await world.write(switch)
        sources = (DATE, guidance(json.loads(body)["agent"]))
        return json.dumps(
            {"data": {"observations": [source.wire() for source in sources]}}
        ).encode()

    world.answer(answer)

    await take_turn(world, "msg_1")

    (initialised,) = (
        event for event in await world.events() if isinstance(event, ContextInitialised)
    )
    (started,) = (event for event in await world.events() if isinstance(event, StepStarted))
    agent, model = target
    assert (started.agent, started.model.id) == target
    assert [part.text for part in initialised.baseline] == [
        f"You are running on the model acme/{model}.",
        "Day 1",
        f"skills of {agent}",
    ]
    assert len(world.provider.requests) == 1


async def test_the_place_is_asked_about_what_the_session_did_there(world: World) -> None:
    """L-28, F-23: the question holds the directories that were read, and the time zone."""
    questions = note_questions(world, DATE)
    other = AT._replace(session_id="ses_2")
    place = LocationRef(directory="/w")
    created = SessionCreated(title="t", project_id="p", location=place, timezone="Europe/Oslo")
    call: dict[str, Any] = {"assistant_message_id": "msg_a", "call_id": "call_1"}
    await world.write(
        created,
        ToolCalled(tool="read", input={"path": "src/a.py"}, provider=Executor(), **call),
        ToolSucceeded(structured={}, content=(), provider=Executor(), **call),
        admitted("msg_2"),
        at=other,
    )

    await take_turn(world, "msg_1")
    await world.wake(other)
    await world.drain()

    assert questions == [
        {
            "location": {"directory": "/w"},
            "tenant": "default",
            "agent": "build",
            "touched": [],
            "withTools": True,
        },
        {
            "location": {"directory": "/w"},
            "tenant": "default",
            "agent": "build",
            "timezone": "Europe/Oslo",
            "touched": ["/w/src"],
            "withTools": True,
        },
    ]


async def test_a_moved_session_begins_at_its_destination_with_a_whole_baseline(
    world: World,
) -> None:
    """F-44: the epoch is cleared, and the new place is observed before anything promotes."""
    questions = note_questions(world, DATE)
    await take_turn(world, "msg_1")
    await world.write(SessionMoved(location=LocationRef(directory="/else")))
    note_questions(world, TOMORROW)

    await take_turn(world, "msg_2")

    assert questions[0]["location"] == {"directory": "/w"}
    assert "Day 2" in world.provider.messages()[0][1]
    assert await context_updates(world) == []
    assert (await world.types()).count("context.initialised") == 2


async def test_an_update_survives_a_failed_call_and_is_not_told_again(world: World) -> None:
    """F-42: the update was committed before the provider call."""
    await take_turn(world, "msg_1")
    world.observe(TOMORROW)
    world.provider.replies.append(error_reply(400, "no"))
    await take_turn(world, "msg_2")

    await take_turn(world, "msg_3")

    assert await context_updates(world) == ["Now day 2"]
    assert sum("Now day 2" in text for _role, text in world.provider.messages()) == 1


async def test_a_change_at_an_idle_session_wakes_nobody(world: World) -> None:
    """F-43: without input nothing is observed and nothing is written."""
    await take_turn(world, "msg_1")
    before = await world.types()
    questions = note_questions(world, TOMORROW)

    await world.drain()

    assert (questions, await world.types()) == ([], before)


async def test_a_recovered_source_is_reconciled_like_any_change(world: World) -> None:
    """F-37: meanwhile the old baseline held, and afterwards one message tells the change."""
    await take_turn(world, "msg_1")
    world.observe(UnavailableSource(key="core/date", reason="hung", why="timeout"))
    await take_turn(world, "msg_2")
    world.observe(TOMORROW)

    await take_turn(world, "msg_3")

    assert await context_updates(world) == ["Now day 2"]
    assert [messages[0] for messages in map(world.provider.messages, range(3))] == [
        ("system", SYSTEM)
    ] * 3


async def test_a_snapshot_that_nobody_can_read_stops_the_session(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-41: no request is sent, and the session is a dead letter with the reason."""
    advanced = ContextSnapshotAdvanced(snapshot={"core/date": SnapshotEntry(value=1)})
    written = record((Draft(ids.event_id(), ids.now_ms(), advanced),), after=0)
    broken = encode(Commit("cmt_1", written)).replace(b"core/date", b"core date")

    async def read(*_args: object, **_options: object) -> CommitPage:
        return CommitPage((StoredCommit(1, decode(broken)),), more=False)

    monkeypatch.setattr(world.log, "read", read)

    await world.drain()

    assert isinstance(world.eventlog.dead_letters, MemoryDeadLetters)
    ((_source, _subject, _payload, reason),) = world.eventlog.dead_letters.letters
    assert "snapshot" in reason
    assert world.provider.requests == []


async def test_what_blocks_a_first_turn_is_told_with_its_reason(world: World) -> None:
    """F-27, M-08: the reason of the rest says what to repair."""
    world.observe(
        DATE,
        UnavailableSource(key="core/instructions", reason="/w/AGENTS.md is binary", why="not-text"),
    )

    await take_turn(world, "msg_1")

    session = await world.session()
    assert session.execution.rest_detail == "core/instructions: /w/AGENTS.md is binary"
    assert len(session.inbox.pending) == 1


async def test_epochs_and_updates_are_counted(world: World) -> None:
    """P-15, F-50: the number of epochs, the length of the baseline, the changes inside an epoch."""
    before = EPOCHS._value.get(), CONTEXT_UPDATES._value.get(), BASELINE_BYTES._sum.get()  # noqa: SLF001
    await take_turn(world, "msg_1")
    await take_turn(world, "msg_2")
    world.observe(TOMORROW)
    await take_turn(world, "msg_3")

    after = EPOCHS._value.get(), CONTEXT_UPDATES._value.get(), BASELINE_BYTES._sum.get()  # noqa: SLF001
    baseline = SYSTEM.removeprefix("Be careful.\n")
    assert [new - old for new, old in zip(after, before, strict=True)] == [1, 1, len(baseline)]
