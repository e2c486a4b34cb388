"""The wake protocol, explored: nothing happens twice, and no requested work stands still."""

from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_schema.prompt import Delivery
from tests.model.corners import CORNERS, Corner
from tests.model.explore import explore, replay, steps
from tests.model.state import Setting, canonical, initial_state, is_undone

ONE: tuple[Delivery, ...] = ("steer",)

# With the sweep, whatever dies or pauses.
SWEPT = {
    "prompts": Setting(crashes=1, expiries=1),
    "queued": Setting(prompts=("steer", "queue"), crashes=1, expiries=1),
    "two crashes": Setting(crashes=2, expiries=1, patient=False, mortal=frozenset({"runner"})),
    "interrupt": Setting(prompts=ONE, interrupts=1, crashes=1, expiries=1),
    "call": Setting(prompts=ONE, workers=2, crashes=1, expiries=1),
    "pure call": Setting(prompts=ONE, workers=2, crashes=1, once=False),
    "pure call and interrupt": Setting(
        prompts=ONE, workers=1, interrupts=1, crashes=1, once=False, mortal=frozenset({"worker"})
    ),
    "call and interrupt": Setting(prompts=ONE, workers=2, interrupts=1, crashes=1),
    "lost request": Setting(prompts=ONE, workers=2, crashes=1, losses=1),
    "lost request of a pure call": Setting(
        prompts=ONE, workers=2, crashes=1, losses=1, once=False, mortal=frozenset({"worker"})
    ),
    "ask": Setting(prompts=ONE, workers=1, asks="permit", crashes=1),
    "declined ask": Setting(prompts=ONE, workers=1, asks="decline", crashes=1),
    "ask and interrupt": Setting(
        prompts=ONE, workers=1, asks="permit", interrupts=1, crashes=1, mortal=frozenset({"runner"})
    ),
}
# Without crashes the sweep is not needed: not with pauses, nor when ingest gives up waking.
UNSWEPT = {
    "everything": Setting(workers=1, interrupts=1, sweep=False),
    "prompts": Setting(expiries=2, patient=False, sweep=False),
    "interrupt": Setting(interrupts=1, expiries=1, patient=False, sweep=False),
    "call": Setting(prompts=ONE, workers=2, expiries=1, patient=False, sweep=False),
    "call and interrupt": Setting(prompts=ONE, workers=2, interrupts=1, sweep=False),
    "pure call": Setting(prompts=ONE, workers=2, expiries=1, once=False, sweep=False),
    "ask": Setting(prompts=ONE, workers=1, asks="permit", expiries=1, patient=False, sweep=False),
    "ask and two workers": Setting(prompts=ONE, workers=2, asks="permit", sweep=False),
    "ask and interrupt": Setting(prompts=ONE, workers=1, asks="permit", interrupts=1, sweep=False),
    "declined ask": Setting(prompts=ONE, workers=1, asks="decline", expiries=1, sweep=False),
}

IMPATIENT = Setting(patient=False, sweep=False)
ONE_RUNNER_DIES = Setting(crashes=1, mortal=frozenset({"runner"}), sweep=False)
PAUSED = Setting(expiries=1, sweep=False)
INTERRUPTED = Setting(interrupts=1, sweep=False)
PARKING = Setting(prompts=ONE, workers=1, sweep=False)
ASKING = Setting(prompts=ONE, workers=1, asks="permit", sweep=False)
LOSSY = Setting(prompts=ONE, workers=1, crashes=1, losses=1, mortal=frozenset({"worker"}))
# Each leaves one rule out, where the whole protocol strands nothing even without the sweep.
NAIVE = {
    "no second look": (IMPATIENT, replace(IMPATIENT, second_look=False)),
    "no retry of a refused wake": (ONE_RUNNER_DIES, replace(ONE_RUNNER_DIES, retry=False)),
    "an owner from before the prompt": (
        ONE_RUNNER_DIES,
        replace(ONE_RUNNER_DIES, earlier_owner_counts=True),
    ),
    "a newer wake taken for a duplicate": (PAUSED, replace(PAUSED, serve_newer=False)),
    "an interrupt that drops later wakes": (
        INTERRUPTED,
        replace(INTERRUPTED, interrupt_keeps_later_wakes=False),
    ),
    "a settlement that does not wake": (PARKING, replace(PARKING, settlement_wakes=False)),
    "an answer that does not wake": (ASKING, replace(ASKING, answer_wakes=False)),
    "an answer that brings no request": (ASKING, replace(ASKING, answer_brings_request=False)),
    "a lost request that nobody makes good": (
        LOSSY,
        replace(LOSSY, abandoned_calls_are_sent_again=False),
    ),
}
UNSAFE = {
    "facts written by any runner": (PAUSED, replace(PAUSED, fenced=False), "another owns"),
    "old wakes that still count": (
        replace(INTERRUPTED, expiries=1),
        replace(INTERRUPTED, expiries=1, wakes_expire=False),
        "an earlier wake ran",
    ),
    "settlements that undo an interrupt": (
        replace(PARKING, interrupts=1),
        replace(PARKING, interrupts=1, settlement_respects_interrupt=False),
        "lost its effect",
    ),
}


@pytest.mark.parametrize("name", SWEPT)
def test_whatever_dies_every_session_comes_to_rest_and_nothing_is_done_twice(name: str) -> None:
    """C-01, C-05, C-12, C-16, C-24, E-20: with the sweep no reachable state is stranded."""
    exploration = explore(SWEPT[name])

    print(f"{name}: {len(exploration.states)} states")  # noqa: T201
    assert [
        (exploration.states[i].fault, exploration.trace(i)) for i in exploration.faulty[:1]
    ] == []
    assert [exploration.trace(i) for i in exploration.stranded[:1]] == []


@pytest.mark.parametrize("name", UNSWEPT)
def test_without_crashes_nothing_is_stranded_even_without_the_sweep(name: str) -> None:
    """C-05, C-06, C-13: wakes alone are enough while nobody dies."""
    exploration = explore(UNSWEPT[name])

    print(f"{name}: {len(exploration.states)} states")  # noqa: T201
    assert [
        (exploration.states[i].fault, exploration.trace(i)) for i in exploration.faulty[:1]
    ] == []
    assert [exploration.trace(i) for i in exploration.stranded[:1]] == []


@pytest.mark.parametrize(
    "setting", [PAUSED, replace(PARKING, workers=2)], ids=["runners", "workers"]
)
def test_the_canonical_states_are_those_of_a_plain_search(setting: Setting) -> None:
    plain = {initial_state(setting)}
    todo = list(plain)
    while todo:
        reached = {after for _label, after in steps(todo.pop(), setting)} - plain
        plain |= reached
        todo += reached

    exploration = explore(setting)

    assert set(exploration.states) == {canonical(s) for s in plain}
    assert len(exploration.states) < len(plain)
    assert replay(setting, exploration.trace(len(exploration.states) - 1)) in plain


@pytest.mark.parametrize("name", NAIVE)
def test_a_naive_variant_strands_a_session(name: str) -> None:
    whole, without = NAIVE[name]
    naive = explore(without)

    assert explore(whole).stranded == []
    assert naive.stranded, "every rule is needed"
    print(f"{name}: {'; '.join(naive.shortest_stranding())}")  # noqa: T201


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_variant_is_seen(name: str) -> None:
    whole, without, complaint = UNSAFE[name]
    unsafe = explore(without)

    assert explore(whole).faulty == []
    assert complaint in unsafe.states[unsafe.faulty[0]].fault
    print(f"{name}: {'; '.join(unsafe.trace(unsafe.faulty[0]))}")  # noqa: T201


@pytest.mark.parametrize("corner", CORNERS, ids=lambda corner: corner.name)
def test_every_corner_can_be_walked(corner: Corner) -> None:
    end = replay(replace(corner.setting, sweep=False), corner.trace)

    assert is_undone(end) == corner.strands
    assert end.fault == ""
    if corner.strands:
        assert list(steps(end, replace(corner.setting, sweep=False))) == []
        assert [label for label, _ in steps(end, corner.setting)] == ["the sweep wakes it"]


def test_every_corner_is_replayed_against_real_processes() -> None:
    tests = (Path(__file__).parents[1] / "integration/test_corners.py").read_text()

    assert [corner.name for corner in CORNERS if f"Corner: {corner.name}." not in tests] == []
