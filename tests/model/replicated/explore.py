"""Explores every interleaving on a replicated log, with its elections and its lost messages."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.model.replicated import ingest, runner, worker
from tests.model.replicated.append import Step
from tests.model.replicated.log import NOBODY, Setting, State, fold, initial_state
from tests.model.search import Search, search


@dataclass(frozen=True, slots=True)
class Exploration:
    """All states, the broken rules with a shortest way to each, and a shortest stranding."""

    found: Search[State]
    faults: dict[str, tuple[str, ...]]
    stranding: tuple[str, ...] | None


def explore(setting: Setting) -> Exploration:
    """Every interleaving of a setting. No sweep helps: nobody dies here."""
    found = search(initial_state(setting), lambda s: steps(s, setting))
    faults: dict[str, tuple[str, ...]] = {}
    for index in found.find(lambda s: bool(s.fault)):
        fault = found.states[index].fault
        if fault not in faults:
            faults[fault] = found.trace(index)
    stranded = found.find_stranded(_is_finished)
    return Exploration(found, faults, found.trace(stranded[0]) if stranded else None)


def steps(s: State, setting: Setting) -> Iterator[Step]:
    """Everything that any actor or the servers may do next."""
    yield from ingest.steps(s, setting)
    for r in range(len(s.runners)):
        yield from runner.steps(s, r, setting)
    yield from worker.steps(s, setting)
    if not s.has_leader:
        yield "a leader is elected", s._replace(has_leader=True)
    elif s.elections:
        yield "the leader dies", s._replace(has_leader=False, elections=s.elections - 1)
    if s.wake is not None and s.wake.holder != NOBODY:
        held = s.runners[s.wake.holder].holds_wake
        if not held or s.expiries:
            back = s.wake._replace(holder=NOBODY)
            yield "the wake's deadline passes", s._replace(wake=back, expiries=s.expiries - held)


def _is_finished(s: State) -> bool:
    view = fold(s.log)
    quiet = all(runner.at == "idle" for runner in s.runners) and s.wake is None
    asked = all(writer.at == "done" for writer in (*s.prompts, s.interrupter, s.worker))
    settled = view.call in {"", "settled"}
    return quiet and asked and settled and not view.is_moving and view.owner == NOBODY
