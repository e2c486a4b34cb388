"""What the runner asks about a place, what it adds itself, and when a change reaches the model."""

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
from services.runner.tests.conftest import AT, DATE, SYSTEM, World, admitted, refuses

DEEP = ModelRef(provider_id="acme", id="deep")
TOMORROW = ObservedSource(key="core/date", value=2, baseline="Day 2", update="Now day 2")


def guidance(agent: str | None) -> ObservedSource:
    return ObservedSource(
        key="core/skills",
        value=agent,
        baseline=f"skills of {agent}",
        update=f"now skills of {agent}",
    )


def watched(world: World, *seen: ObservedSource | UnavailableSource) -> list[dict[str, Any]]:
    """Note what is asked; answer with these and the guidance of whoever is asked for."""
    questions: list[dict[str, Any]] = []

    async def answer(body: bytes) -> bytes:
        questions.append(json.loads(body))
        whole = (*seen, guidance(questions[-1].get("agent")))
        return json.dumps({"data": {"observations": [one.wire() for one in whole]}}).encode()

    world.answer(answer)
    return questions


async def told(world: World) -> list[str]:
    return [event.text for event in await world.events() if isinstance(event, ContextUpdated)]


async def turn(world: World, id_: str) -> None:
    await world.write(admitted(id_))
    await world.drained()


def deep(world: World) -> None:
    world.config["provider"]["acme"]["model"]["deep"] = {"id": "deep-1"}


async def test_a_model_switch_is_one_message_and_no_new_epoch(world: World) -> None:
    """F-23, F-33: the baseline keeps its bytes; the location knows nothing of models."""
    deep(world)
    questions = watched(world, DATE)
    await turn(world, "msg_1")
    await world.write(ModelSwitched(message_id="msg_m", model=DEEP))

    await turn(world, "msg_2")

    assert await told(world) == [
        "The model has changed: from here on you are running on the model acme/deep."
    ]
    assert world.provider.asked()[0] == world.provider.asked(0)[0]
    assert world.provider.requests[-1]["model"] == "deep-1"
    assert "deep" not in str(questions)
    types = await world.types()
    assert types.count("context.initialised") == 1
    assert "context.replaced" not in types


async def test_an_agent_switch_brings_its_guidance_as_a_message(world: World) -> None:
    """F-34: the baseline stays; the agent that speaks is the one that is asked for."""
    world.config["agent"]["plan"] = {}
    questions = watched(world, DATE)
    await turn(world, "msg_1")
    await world.write(AgentSwitched(message_id="msg_g", agent="plan"))

    await turn(world, "msg_2")

    assert [question["agent"] for question in questions] == ["build", "plan"]
    assert await told(world) == ["now skills of plan"]
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
    """F-35, F-36: a switch while the place is observed makes the boundary be prepared again.

    The log refuses what was prepared for another agent or model, so no request mixes the two.
    """
    deep(world)
    world.config["agent"]["plan"] = {}
    questions = 0

    async def answer(body: bytes) -> bytes:
        nonlocal questions
        questions += 1
        if questions == 1:
            await world.write(switch)
        seen = (DATE, guidance(json.loads(body)["agent"]))
        return json.dumps({"data": {"observations": [one.wire() for one in seen]}}).encode()

    world.answer(answer)

    await turn(world, "msg_1")

    (begun,) = (event for event in await world.events() if isinstance(event, ContextInitialised))
    (spoke,) = (event for event in await world.events() if isinstance(event, StepStarted))
    agent, model = target
    assert (spoke.agent, spoke.model.id) == target
    assert [part.text for part in begun.baseline] == [
        f"You are running on the model acme/{model}.",
        "Day 1",
        f"skills of {agent}",
    ]
    assert len(world.provider.requests) == 1


async def test_the_place_is_asked_about_what_the_session_did_there(world: World) -> None:
    """L-28, F-23: where it has read, and whose calendar counts."""
    questions = watched(world, DATE)
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

    await turn(world, "msg_1")
    await world.wake(other)
    await world.drained()

    assert questions == [
        {"location": {"directory": "/w"}, "agent": "build", "touched": []},
        {
            "location": {"directory": "/w"},
            "agent": "build",
            "timezone": "Europe/Oslo",
            "touched": ["/w/src"],
        },
    ]


async def test_a_moved_session_begins_at_its_destination_with_a_whole_baseline(
    world: World,
) -> None:
    """F-44: the epoch is cleared, and the new place is observed before anything promotes."""
    questions = watched(world, DATE)
    await turn(world, "msg_1")
    await world.write(SessionMoved(location=LocationRef(directory="/else")))
    watched(world, TOMORROW)

    await turn(world, "msg_2")

    assert questions[0]["location"] == {"directory": "/w"}
    assert "Day 2" in world.provider.asked()[0][1]
    assert await told(world) == []
    assert (await world.types()).count("context.initialised") == 2


async def test_an_update_survives_a_failed_call_and_is_not_told_again(world: World) -> None:
    """F-42: it was committed before the call."""
    await turn(world, "msg_1")
    world.observe(TOMORROW)
    world.provider.replies.append(refuses(400, "no"))
    await turn(world, "msg_2")

    await turn(world, "msg_3")

    assert await told(world) == ["Now day 2"]
    assert sum("Now day 2" in text for _role, text in world.provider.asked()) == 1


async def test_a_change_at_an_idle_session_wakes_nobody(world: World) -> None:
    """F-43: nothing is asked, nothing is written, until somebody has something to say."""
    await turn(world, "msg_1")
    before = await world.types()
    questions = watched(world, TOMORROW)

    await world.drained()

    assert (questions, await world.types()) == ([], before)


async def test_a_recovered_source_is_reconciled_like_any_change(world: World) -> None:
    """F-37: while it was away the old baseline served, and afterwards one message tells the rest."""
    await turn(world, "msg_1")
    world.observe(UnavailableSource(key="core/date", reason="hung", why="timeout"))
    await turn(world, "msg_2")
    world.observe(TOMORROW)

    await turn(world, "msg_3")

    assert await told(world) == ["Now day 2"]
    assert [asked[0] for asked in map(world.provider.asked, range(3))] == [("system", SYSTEM)] * 3


async def test_a_snapshot_that_nobody_can_read_stops_the_session(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-41: no request, and the wake is buried with the reason."""
    advanced = ContextSnapshotAdvanced(snapshot={"core/date": SnapshotEntry(value=1)})
    written = record((Draft(ids.event_id(), ids.now_ms(), advanced),), after=0)
    broken = encode(Commit("cmt_1", written)).replace(b"core/date", b"core date")

    async def read(*_asked: object, **_more: object) -> CommitPage:
        return CommitPage((StoredCommit(1, decode(broken)),), more=False)

    monkeypatch.setattr(world.log, "read", read)

    await world.drained()

    assert isinstance(world.eventlog.dead_letters, MemoryDeadLetters)
    ((_source, _subject, _payload, reason),) = world.eventlog.dead_letters.letters
    assert "snapshot" in reason
    assert world.provider.requests == []


async def test_what_blocks_a_first_turn_is_told_with_its_reason(world: World) -> None:
    """F-27, M-08: whoever looks at the session reads what to mend."""
    world.observe(
        DATE,
        UnavailableSource(key="core/instructions", reason="/w/AGENTS.md is binary", why="not-text"),
    )

    await turn(world, "msg_1")

    session = await world.session()
    assert session.execution.rest_detail == "core/instructions: /w/AGENTS.md is binary"
    assert len(session.inbox.pending) == 1


async def test_epochs_and_updates_are_counted(world: World) -> None:
    """F-50: how many, how long the baseline, how often something changed inside one."""
    before = EPOCHS._value.get(), CONTEXT_UPDATES._value.get(), BASELINE_BYTES._sum.get()  # noqa: SLF001
    await turn(world, "msg_1")
    await turn(world, "msg_2")
    world.observe(TOMORROW)
    await turn(world, "msg_3")

    after = EPOCHS._value.get(), CONTEXT_UPDATES._value.get(), BASELINE_BYTES._sum.get()  # noqa: SLF001
    baseline = SYSTEM.removeprefix("Be careful.\n")
    assert [new - old for new, old in zip(after, before, strict=True)] == [1, 1, len(baseline)]
