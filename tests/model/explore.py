"""Explores every interleaving of a setting: how many states, what is wrong, what can never finish."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.model import ingest, runner, worker
from tests.model.search import Search, search
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

    found: Search[State]
    faulty: list[int]
    stranded: list[int]

    @property
    def states(self) -> list[State]:
        return self.found.states

    def trace(self, index: int) -> tuple[str, ...]:
        """A shortest way to a state."""
        return self.found.trace(index)

    def shortest_stranding(self) -> tuple[str, ...]:
        """A shortest way to a stranded state."""
        return self.trace(self.stranded[0])


def explore(setting: Setting) -> Exploration:
    """Every interleaving. Equal actors are interchangeable: one canonical state stands for up to four."""
    found = search(initial_state(setting), lambda s: steps(s, setting), canonical)
    return Exploration(
        found, found.find(lambda s: bool(s.fault)), found.find_stranded(_is_finished)
    )


def _is_finished(s: State) -> bool:
    return not is_undone(s) and s.request == NO_TOKEN and s.second in {NO_TOKEN, NEVER}


def replay(setting: Setting, trace: tuple[str, ...]) -> State:
    """The state after a trace, of which every step must be possible at its place."""
    s = initial_state(setting)
    for number, label in enumerate(trace):
        possible = dict(steps(s, setting))
        assert label in possible, f"step {number}, {label!r}: possible are {sorted(possible)}"
        s = possible[label]
    return s
