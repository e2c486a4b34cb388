"""The chaos notices a turn that was lost although nobody struck its runner."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AttemptDispatched,
    ExecutionClaimed,
    ExecutionRecovered,
    InterruptRequested,
    SessionEvent,
    StepEnded,
    ToolFailed,
)
from fairlead_schema.record import Draft, Recorded, record
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from tests.chaos.lost_turns import RunnerLife, find_lost_turns, read_lives
from tests.chaos.weather import Struck

MODEL = ModelRef(provider_id="acme", id="fast")
LIVES = {"run_a": RunnerLife(0, 1_000), "run_b": RunnerLife(1, 1_000)}
ASKED: tuple[SessionEvent, ...] = (
    ExecutionClaimed(generation=1, runner="run_a"),
    AttemptDispatched(
        attempt_id="att_1", assistant_message_id="msg_a", agent="build", model=MODEL, step=1
    ),
)
TAKEN_OVER: tuple[SessionEvent, ...] = (
    ExecutionClaimed(generation=2, runner="run_b"),
    ExecutionRecovered(attempt_id="att_1", action="retried", detail="its runner is gone"),
)


def log_of(*events: SessionEvent) -> dict[str, list[Recorded]]:
    """Events a second apart, the first at 10 s."""
    drafts = tuple(
        Draft(f"evt_{number}", 10_000 + 1_000 * number, event)
        for number, event in enumerate(events)
    )
    return {"ses_1": list(record(drafts, after=0))}


def lost(events: Iterable[SessionEvent], *struck: Struck) -> int:
    return len(find_lost_turns(log_of(*events), struck, LIVES))


def test_a_turn_that_was_answered_is_not_lost() -> None:
    ended = StepEnded(assistant_message_id="msg_a", finish="stop", cost=0, tokens=Tokens())

    assert lost((*ASKED, ended)) == 0


def test_a_turn_that_was_taken_from_a_living_runner_is_lost() -> None:
    assert lost((*ASKED, *TAKEN_OVER)) == 1
    assert lost((*ASKED, *TAKEN_OVER), Struck("nats", 0, "killed", 11_000, 11_000)) == 1
    assert lost((*ASKED, *TAKEN_OVER), Struck("runner", 1, "killed", 11_000, 11_000)) == 1


@pytest.mark.parametrize(
    "struck",
    [
        Struck("runner", 0, "killed", 11_500, 11_500),
        Struck("runner", 0, "paused", 10_500, 11_500),
        Struck("runner", 0, "restarted in turn", 11_500, 14_000),
        Struck("nats", 2, "paused", 5_000, 11_500),
    ],
)
def test_a_turn_of_a_struck_runner_or_behind_a_paused_node_is_excused(struck: Struck) -> None:
    assert lost((*ASKED, *TAKEN_OVER), struck) == 0


def test_the_death_of_an_earlier_life_excuses_nothing() -> None:
    assert lost((*ASKED, *TAKEN_OVER), Struck("runner", 0, "killed", 900, 900)) == 1
    assert lost((*ASKED, *TAKEN_OVER), Struck("runner", 0, "restarted in turn", 900, 1_200)) == 1


def test_what_a_person_stopped_is_not_lost() -> None:
    assert lost((*ASKED, InterruptRequested(), *TAKEN_OVER)) == 0


def test_a_call_that_ended_as_interrupted_without_a_struck_worker_is_lost() -> None:
    failed = ToolFailed(
        assistant_message_id="msg_a",
        call_id="call_1",
        error=ErrorInfo(message=INTERRUPTED_TOOL),
        provider=Executor(executed=False),
    )

    assert lost((failed,)) == 1
    assert lost((failed,), Struck("tools", 1, "killed", 9_000, 9_000)) == 0
    assert lost((InterruptRequested(), failed)) == 0


def test_the_lives_of_runners_are_read_from_their_logs(tmp_path: Path) -> None:
    line = '{"time":"2026-11-17T22:00:00+00:00","message":"runner takes wakes","runner":"run_x"}'
    (tmp_path / "runner-1.log").write_text(f"noise\n{line}\n")

    assert read_lives(tmp_path) == {"run_x": RunnerLife(1, 1_794_952_800_000)}
