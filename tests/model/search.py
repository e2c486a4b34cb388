"""A search over every state that steps can reach: the shortest way to each, and what can never finish."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

S = TypeVar("S")
Steps: TypeAlias = Callable[[S], Iterable[tuple[str, S]]]


@dataclass(slots=True)
class Search(Generic[S]):
    """Every reachable state in its canonical form, in the order of its distance from the first."""

    steps: Steps[S]
    canonical: Callable[[S], S]
    states: list[S]
    origins: list[int] = field(default_factory=lambda: [0])
    before: list[list[int]] = field(default_factory=lambda: [[]])

    def trace(self, index: int) -> tuple[str, ...]:
        """A shortest way to a state, with the same number for the same actor from start to end."""
        way: list[S] = []
        while index:
            way.append(self.states[index])
            index = self.origins[index]
        s, labels = self.states[0], list[str]()
        for target in reversed(way):
            label, s = next(step for step in self.steps(s) if self.canonical(step[1]) == target)
            labels.append(label)
        return tuple(labels)

    def find(self, is_wanted: Callable[[S], bool]) -> list[int]:
        """The wanted states, the nearest first."""
        return [index for index, s in enumerate(self.states) if is_wanted(s)]

    def find_stranded(self, is_finished: Callable[[S], bool]) -> list[int]:
        """The states from which no way leads to a finished one."""
        can_finish = [is_finished(s) for s in self.states]
        todo = [index for index, good in enumerate(can_finish) if good]
        while todo:
            for earlier in self.before[todo.pop()]:
                if not can_finish[earlier]:
                    can_finish[earlier] = True
                    todo.append(earlier)
        return [index for index, good in enumerate(can_finish) if not good]


def search(first: S, steps: Steps[S], canonical: Callable[[S], S] = lambda s: s) -> Search[S]:
    """Breadth first, so that the first way to a state is a shortest one."""
    found = Search(steps, canonical, [first])
    index = {first: 0}
    todo = deque([0])
    while todo:
        here = todo.popleft()
        for _label, reached in steps(found.states[here]):
            after = canonical(reached)
            there = index.get(after)
            if there is None:
                there = index[after] = len(found.states)
                found.states.append(after)
                found.origins.append(here)
                found.before.append([])
                todo.append(there)
            found.before[there].append(here)
    return found
