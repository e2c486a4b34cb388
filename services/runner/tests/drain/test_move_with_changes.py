"""Moves with changes by a drain: the order of the log and of the files, and every place to die in."""

from typing import Any

import pytest

from fairlead_runner.drain.revert_server import UNREACHABLE
from fairlead_schema.events import (
    MoveBegun,
    MoveEnded,
    MoveFailed,
    MoveRequested,
    SessionMoved,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.record import LEVEL_NEWEST
from services.runner.tests.conftest import CREATED, World, admitted
from services.runner.tests.drain.test_reverts import Files

THERE = LocationRef(directory="/there")
REQUEST = MoveRequested(location=THERE)
TREES = {"before": "1" * 40, "target": "2" * 40, "changed": "3" * 40, "kept": "4" * 40}
BEGUN = MoveBegun(**TREES, subdirectory="inner")
MOVED = SessionMoved(location=THERE, subdirectory="inner")
TRANSFER = {"trees": TREES, "subdirectory": "inner"}


@pytest.fixture
async def files(world: World) -> Files:
    await world.eventlog.status.finalise(LEVEL_NEWEST)
    asked = Files(world)
    asked.answer("prepare-move", TRANSFER)
    asked.answer("apply", {})
    asked.answer("discard", {})
    return asked


async def move(world: World) -> list[str]:
    """Ask for the move, drain, and return the types of the events since."""
    await world.write(CREATED, REQUEST)
    seen = len(await world.types())
    await world.drain()
    return await world.types(after=seen)


async def test_changes_are_applied_then_written_then_discarded(world: World, files: Files) -> None:
    """N-17: at every act the log has what came before it, and nothing of what comes after."""
    last: dict[str, str] = {}

    def note(act: str, answer: dict[str, Any]) -> None:
        async def respond(_question: dict[str, Any]) -> dict[str, Any]:
            last[act] = (await world.types())[-1]
            return answer

        files.answer(act, respond)

    note("apply", {})
    note("discard", {})

    types = await move(world)

    assert files.acts() == ["prepare-move", "apply", "discard"]
    assert last == {"apply": "move.begun", "discard": "moved"}
    assert types == [
        "execution.claimed",
        "move.begun",
        "moved",
        "move.ended",
        "execution.released",
    ]
    question = files.asked[-1][1]
    assert (question["source"]["directory"], question["request"]) == ("/w", 3)
    assert question["trees"] == TREES
    session = await world.session()
    assert session.profile is not None
    assert (session.profile.location, session.profile.subpath) == (THERE, "inner")


async def test_without_changes_the_session_only_moves(world: World, files: Files) -> None:
    """N-18: nothing is transferred, and the subpath is new."""
    files.answer("prepare-move", {"subdirectory": "inner"})

    types = await move(world)

    assert files.acts() == ["prepare-move"]
    assert types[1:-1] == ["moved", "move.ended"]
    assert MOVED in await world.events()


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"prepare-move": {"refused": "no git"}}, "no git"),
        ({"apply": {"refused": "conflict"}}, "conflict"),
    ],
)
async def test_a_refusal_leaves_the_session_unmoved(
    world: World, files: Files, answers: dict[str, dict[str, Any]], reason: str
) -> None:
    """N-20: errors of capture and apply."""
    for act, answer in answers.items():
        files.answer(act, answer)

    types = await move(world)

    assert types[-2:] == ["move.failed", "execution.released"]
    assert "discard" not in files.acts()
    session = await world.session()
    assert session.profile is not None
    assert session.profile.location.directory == "/w"
    assert session.relocation.ended is not None
    assert session.relocation.ended.failed == reason


async def test_a_destination_that_no_worker_sees_is_refused(world: World, files: Files) -> None:
    """N-20: nobody answers, so nothing begins."""
    world.answer(None)

    await move(world)

    failed = [event for event in await world.events() if isinstance(event, MoveFailed)]
    assert failed == [MoveFailed(reason=UNREACHABLE)]
    assert files.asked == []


async def test_a_failed_discard_is_reported_after_the_move(world: World, files: Files) -> None:
    """N-20"""
    files.answer("discard", {"refused": "changed meanwhile: 'a.txt'"})

    types = await move(world)

    assert types[-3:-1] == ["moved", "move.ended"]
    assert MoveEnded(undiscarded="changed meanwhile: 'a.txt'") in await world.events()


@pytest.mark.parametrize(
    ("log", "acts"),
    [
        ((), ["prepare-move", "apply", "discard"]),
        ((BEGUN,), ["apply", "discard"]),
        ((BEGUN, MOVED), ["discard"]),
    ],
)
async def test_the_next_runner_goes_on_where_the_log_stands(
    world: World, files: Files, log: tuple[MoveBegun, ...], acts: list[str]
) -> None:
    """N-17: a runner died after the request, after the intent, or after the move."""
    await world.write(CREATED, REQUEST, *log)

    await world.drain("run_b")

    assert files.acts() == acts
    events = await world.events()
    assert [type(event) for event in events].count(SessionMoved) == 1
    assert events[-2] == MoveEnded()


@pytest.mark.parametrize("act", ["apply", "discard"])
async def test_a_transfer_waits_for_a_tools_service(world: World, files: Files, act: str) -> None:
    """Once files may have changed, the same act is asked for until it is answered."""
    files.answer(act, {"refused": "busy", "again": True}, {})

    await move(world)

    session = await world.session()
    assert session.execution.rested == "context-unavailable"
    assert session.relocation.requested is not None
    await world.drain()
    assert (await world.session()).relocation.requested is None
    assert files.acts().count(act) == 2


async def test_input_is_answered_at_the_destination(world: World, files: Files) -> None:
    """N-17, N-22: a prompt that came meanwhile waits for the move."""
    files.answer("capture", {"unavailable": "no git"})
    await world.write(CREATED, REQUEST, admitted("msg_1"))

    await world.drain()

    types = await world.types()
    assert types.index("move.ended") < types.index("prompt.promoted")
