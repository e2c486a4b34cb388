"""Explores every interleaving of a setting: how many states, what is wrong, what can never finish."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.model import ingest, runner, worker
from tests.model.state import (
    AVAILABLE,
    NEVER,
    NO_TOKEN,
    Setting,
    State,
    Worker,
    canonical,
    initial_state,
    is_moving,
    is_undone,
    with_wake,
)

Step = tuple[str, State]


def steps(s: State, setting: Setting) -> Iterator[Step]:
    """Everything that any actor may do next."""
    yield from ingest.steps(s, setting)
    for r in range(len(s.runners)):
        yield from runner.steps(s, r, setting)
    for w in range(len(s.workers)):
        yield from worker.steps(s, w, setting)
    yield from _deadlines(s)
    if s.losses and s.request != NO_TOKEN:
        yield "the server loses the request", s._replace(request=NO_TOKEN, losses=s.losses - 1)
    if setting.sweep and is_moving(s) and all(other.at == "idle" for other in s.runners):
        swept = with_wake(s)
        if swept is not None:
            yield "the sweep wakes it", swept


def _deadlines(s: State) -> Iterator[Step]:
    """A message without a holder is delivered again. Under a living holder this needs a pause."""
    if s.wake >= 0:
        holder = s.runners[s.wake]
        held = holder.token or holder.newer == "current"
        if not held or s.expiries:
            back = s._replace(wake=AVAILABLE, expiries=s.expiries - held)
            yield "the wake's deadline passes", back
    if s.request >= 0:
        held = _holds(s.workers[s.request], second=False)
        if not held or s.expiries:
            back = s._replace(request=AVAILABLE, expiries=s.expiries - held)
            yield "the request's deadline passes", back
    if s.second >= 0:
        held = _holds(s.workers[s.second], second=True)
        if not held or s.expiries:
            back = s._replace(second=AVAILABLE, expiries=s.expiries - held)
            yield "the second request's deadline passes", back


def _holds(actor: Worker, *, second: bool) -> bool:
    return actor.at != "idle" and actor.second is second


@dataclass(slots=True)
class Exploration:
    """Every reachable state in its canonical form, and which states are faulty or stranded."""

    setting: Setting
    states: list[State] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    faulty: list[int] = field(default_factory=list)
    stranded: list[int] = field(default_factory=list)

    def trace(self, index: int) -> tuple[str, ...]:
        """A shortest way to a state, with the same number for the same actor from start to end."""
        way: list[State] = []
        while index:
            way.append(self.states[index])
            index = self.origins[index]
        s, labels = self.states[0], list[str]()
        for target in reversed(way):
            possible = steps(s, self.setting)
            label, s = next(step for step in possible if canonical(step[1]) == target)
            labels.append(label)
        return tuple(labels)

    def shortest_stranding(self) -> tuple[str, ...]:
        """A shortest way to a stranded state."""
        return self.trace(self.stranded[0])


def explore(setting: Setting) -> Exploration:
    """Breadth first, so that the first way to a state is a shortest one.

    Equal actors are interchangeable, so one canonical state stands for up to four.
    """
    first = initial_state(setting)
    exploration = Exploration(setting, [first], [0])
    index = {first: 0}
    before: list[list[int]] = [[]]
    todo = deque([0])
    while todo:
        here = todo.popleft()
        for _label, reached in steps(exploration.states[here], setting):
            after = canonical(reached)
            there = index.get(after)
            if there is None:
                there = index[after] = len(exploration.states)
                exploration.states.append(after)
                exploration.origins.append(here)
                before.append([])
                todo.append(there)
                if after.fault:
                    exploration.faulty.append(there)
            before[there].append(here)
    exploration.stranded = _find_stranded(exploration.states, before)
    return exploration


def _find_stranded(states: list[State], before: list[list[int]]) -> list[int]:
    """The states from which no way leads to a state with nothing left to do."""
    can_finish = [
        not is_undone(s) and s.request == NO_TOKEN and s.second in {NO_TOKEN, NEVER} for s in states
    ]
    todo = [index for index, good in enumerate(can_finish) if good]
    while todo:
        for earlier in before[todo.pop()]:
            if not can_finish[earlier]:
                can_finish[earlier] = True
                todo.append(earlier)
    return [index for index, good in enumerate(can_finish) if not good]


def replay(setting: Setting, trace: tuple[str, ...]) -> State:
    """The state after a trace, of which every step must be possible at its place."""
    s = initial_state(setting)
    for number, label in enumerate(trace):
        possible = dict(steps(s, setting))
        assert label in possible, f"step {number}, {label!r}: possible are {sorted(possible)}"
        s = possible[label]
    return s
