"""What a rehearsal did and found, as text for people and as JSON for programs."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Final

PROMISES: Final = ("lost", "doubled", "stranded", "other")


@dataclass
class Step:
    """One step: how long it took, and what is worth knowing of it."""

    name: str
    seconds: float = 0.0
    detail: str = ""


@dataclass
class Report:
    """The steps in order, the load, what was broken, what clients noticed, and the verdict of the audit."""

    steps: list[Step] = field(default_factory=list)
    load: Counter[str] = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0
    """The longest time that a client asked again before it had an answer."""
    broken: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in PROMISES})
    audit: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Time a step, and print a line before and after it."""
        step = Step(name)
        self.steps.append(step)
        print(f"[{len(self.steps):>2}] {name} …", flush=True)  # noqa: T201
        begun = time.monotonic()
        try:
            yield step
        finally:
            step.seconds = round(time.monotonic() - begun, 1)
            print(f"     {step.seconds:.1f} s  {step.detail}", flush=True)  # noqa: T201

    @property
    def is_good(self) -> bool:
        return not any(self.broken.values())

    def lines(self) -> list[str]:
        width = max(len(step.name) for step in self.steps)
        counts = ", ".join(f"{count} {name}" for name, count in self.load.items())
        noticed = ", ".join(f"{count} x {name}" for name, count in self.noticed.most_common())
        return [
            "Rehearsal",
            *(
                f"  {step.name:<{width}}  {step.seconds:>6.1f} s  {step.detail}"
                for step in self.steps
            ),
            f"load: {counts}",
            "acknowledged: " + ", ".join(f"{name} {len(self.broken[name])}" for name in PROMISES),
            f"clients noticed: {noticed or 'nothing'}; longest wait for an answer {self.longest_s:.1f} s",
            *(f"audit: {line}" for line in self.audit),
            *(f"{name}: {text}" for name, texts in self.broken.items() for text in texts),
            f"verdict: {'every promise was kept' if self.is_good else 'PROMISES WERE BROKEN'}",
        ]

    def to_json(self) -> str:
        document = {
            "good": self.is_good,
            "steps": [asdict(step) for step in self.steps],
            "load": dict(self.load),
            "noticed": dict(self.noticed),
            "longest_wait_s": self.longest_s,
            "broken": self.broken,
            "audit": self.audit,
        }
        return json.dumps(document, indent=2)
