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
    moving,
    start,
    undone,
    woken,
)

Step = tuple[str, State]


def steps(s: State, setting: Setting) -> Iterator[Step]:
    """Everything that may happen next, by whomever."""
    yield from ingest.steps(s, setting)
    for r in range(len(s.runners)):
        yield from runner.steps(s, r, setting)
    for w in range(len(s.workers)):
        yield from worker.steps(s, w, setting)
    yield from _deadlines(s)
    if s.losses and s.request != NO_TOKEN:
        yield "the server loses the request", s._replace(request=NO_TOKEN, losses=s.losses - 1)
    if setting.sweep and moving(s) and all(one.at == "idle" for one in s.runners):
        swept = woken(s)
        if swept is not None:
            yield "the sweep wakes it", swept


def _deadlines(s: State) -> Iterator[Step]:
    """What nobody holds any more comes back by itself; a holder that lives must be paused first."""
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


def _holds(one: Worker, *, second: bool) -> bool:
    return one.at != "idle" and one.second is second


@dataclass(slots=True)
class Explored:
    """What an exploration found."""

    states: list[State] = field(default_factory=list)
    came: list[tuple[int, str]] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    stranded: list[int] = field(default_factory=list)

    def trace(self, index: int) -> tuple[str, ...]:
        """A shortest way to a state."""
        way: list[str] = []
        while index:
            index, label = self.came[index]
            way.append(label)
        return tuple(reversed(way))

    def worst(self) -> tuple[str, ...]:
        """A shortest way to a stranded state."""
        return self.trace(self.stranded[0])


def explore(setting: Setting) -> Explored:
    """Breadth first, so that the first way to a state is a shortest one."""
    first = start(setting)
    found = Explored([first], [(0, "")])
    index = {first: 0}
    before: list[list[int]] = [[]]
    todo = deque([0])
    while todo:
        here = todo.popleft()
        for label, after in steps(found.states[here], setting):
            there = index.get(after)
            if there is None:
                there = index[after] = len(found.states)
                found.states.append(after)
                found.came.append((here, label))
                before.append([])
                todo.append(there)
                if after.wrong:
                    found.wrong.append(there)
            before[there].append(here)
    found.stranded = _stranded(found.states, before)
    return found


def _stranded(states: list[State], before: list[list[int]]) -> list[int]:
    """The states from which no way leads to one where nothing is left undone."""
    saved = [
        not undone(s) and s.request == NO_TOKEN and s.second in {NO_TOKEN, NEVER} for s in states
    ]
    todo = [index for index, good in enumerate(saved) if good]
    while todo:
        for one in before[todo.pop()]:
            if not saved[one]:
                saved[one] = True
                todo.append(one)
    return [index for index, good in enumerate(saved) if not good]


def replay(setting: Setting, trace: tuple[str, ...]) -> State:
    """Walk a named trace; every step must be possible where it stands."""
    s = start(setting)
    for number, label in enumerate(trace):
        possible = dict(steps(s, setting))
        assert label in possible, f"step {number}, {label!r}: possible are {sorted(possible)}"
        s = possible[label]
    return s
