"""The corner cases of the wake protocol, as traces of steps.

The model walks each trace, and `tests/integration/test_corners.py` replays it against real processes.
"""

from dataclasses import dataclass
from typing import Final

from tests.model.state import Setting

ANSWERED: Final = (
    "ingest appends 0",
    "ingest wakes for 0",
    "r0 takes the wake",
    "r0 reads the log",
    "r0 crosses the boundary",
    "r0 answers and releases",
)
"""One prompt, answered; the wake is still held."""
STREAMING: Final = ANSWERED[:5]
CALLED: Final = (*STREAMING, "r0 writes the call")
PARKED: Final = (*CALLED, "r0 queues the request", "r0 ends the stream", "r0 parks")
ENDED: Final = ("r0 acknowledges", "r0 looks again")


@dataclass(frozen=True, slots=True)
class Corner:
    """A named trace. It ends at rest, or `strands` the session, which the sweep must then find."""

    name: str
    setting: Setting
    trace: tuple[str, ...]
    strands: bool = False


CORNERS: Final = (
    Corner(
        "ingest dies between append and wake",
        Setting(prompts=("steer",), crashes=1),
        ("ingest appends 0", "ingest dies before it wakes for 0"),
        strands=True,
    ),
    Corner(
        "a stale acknowledgement followed by two crashes",
        Setting(crashes=2, expiries=1, patient=False),
        (
            *ANSWERED,
            "ingest appends 1",
            "ingest is refused for 1",
            "ingest gives up on 1",
            "the wake's deadline passes",
            "r1 takes the wake",
            "r1 reads the log",
            "r1 crosses the boundary",
            "r0 acknowledges",
            "r0 crashes at look",
            "r1 crashes at turn",
        ),
        strands=True,
    ),
    Corner(
        "a paused owner is overtaken",
        Setting(prompts=("steer",), expiries=1),
        (
            *STREAMING,
            "the wake's deadline passes",
            "r1 takes the wake",
            "r1 reads the log",
            "r1 crosses the boundary",
            "r0 is fenced",
            "r1 answers and releases",
            "r1 acknowledges",
            "r1 looks again",
        ),
    ),
    Corner(
        "input arrives between release and acknowledgement",
        Setting(patient=False),
        (
            *ANSWERED,
            "ingest appends 1",
            "ingest is refused for 1",
            "ingest gives up on 1",
            "r0 acknowledges",
            "r0 looks again",
            "r0 takes the wake",
            "r0 reads the log",
            "r0 crosses the boundary",
            "r0 answers and releases",
            *ENDED,
        ),
    ),
    Corner(
        "a newer wake comes while the drain ends",
        Setting(),
        (
            *ANSWERED,
            "r0 acknowledges",
            "ingest appends 1",
            "ingest wakes for 1",
            "r0 keeps a newer wake",
            "r0 looks again",
            "r0 reads the log",
            "r0 crosses the boundary",
            "r0 answers and releases",
            *ENDED,
        ),
    ),
    Corner(
        "input arrives as the turn ends",
        Setting(),
        (
            *STREAMING,
            "ingest appends 1",
            "r0 answers",
            "r0 crosses the boundary",
            "r0 answers and releases",
            "r0 acknowledges",
            "r0 looks again",
            "ingest wakes for 1",
            "r0 takes the wake",
            "r0 reads the log",
            "r0 finds rest",
            *ENDED,
        ),
    ),
    Corner(
        "a runner dies between a call and its request",
        Setting(prompts=("steer",), workers=1, crashes=1),
        (
            *CALLED,
            "r0 crashes at request",
            "the wake's deadline passes",
            "r1 takes the wake",
            "r1 reads the log",
            "r1 waits for the call",
            "r1 queues the request",
            "w0 takes the request",
            "w0 reads the log",
            "w0 starts the call",
            "w0 settles the call",
            "w0 is refused",
            "r1 has waited",
            "r1 crosses the boundary",
            "r1 answers and releases",
            "w0 acknowledges the request",
            "r1 acknowledges",
            "r1 looks again",
        ),
    ),
    Corner(
        "a settlement arrives while the runner parks",
        Setting(prompts=("steer",), workers=1),
        (
            *PARKED,
            "w0 takes the request",
            "w0 reads the log",
            "w0 starts the call",
            "w0 settles the call",
            "w0 is refused",
            *ENDED,
            "r0 takes the wake",
            "r0 reads the log",
            "r0 crosses the boundary",
            "r0 answers and releases",
            "w0 acknowledges the request",
            *ENDED,
        ),
    ),
    Corner(
        "the worker of a once call dies",
        Setting(prompts=("steer",), workers=2, crashes=1),
        (
            *PARKED,
            *ENDED,
            "w0 takes the request",
            "w0 reads the log",
            "w0 starts the call",
            "w0 crashes at run",
            "the request's deadline passes",
            "w1 takes the request",
            "w1 finds its starter gone",
            "w1 settles the call",
            "w1 wakes the session",
            "w1 acknowledges the request",
            "r0 takes the wake",
            "r0 reads the log",
            "r0 crosses the boundary",
            "r0 answers and releases",
            *ENDED,
        ),
    ),
    Corner(
        "an interrupt arrives between a reading and its claim",
        Setting(prompts=("steer",), interrupts=1, crashes=1),
        (
            *STREAMING,
            "r0 crashes at turn",
            "the wake's deadline passes",
            "r1 takes the wake",
            "r1 reads the log",
            "ingest appends the interrupt",
            "ingest is refused for the interrupt",
            "r1 finds that the log moved",
            "r1 reads the log",
            "r1 honours the interrupt",
            "r1 acknowledges",
            "r1 looks again",
        ),
    ),
    Corner(
        "an interrupt finds the session parked",
        Setting(prompts=("steer",), interrupts=1, workers=1),
        (
            *PARKED,
            *ENDED,
            "ingest appends the interrupt",
            "ingest wakes for the interrupt",
            "r0 takes the wake",
            "r0 reads the log",
            "r0 honours the interrupt",
            *ENDED,
            "w0 takes the request",
            "w0 finds the call settled",
            "w0 wakes the session",
            "w0 acknowledges the request",
            "r0 takes the wake",
            "r0 reads the log",
            "r0 finds rest",
            *ENDED,
        ),
    ),
    Corner(
        "an interrupt meets what nobody has begun",
        Setting(prompts=("steer",), interrupts=1),
        (
            "ingest appends 0",
            "ingest wakes for 0",
            "r0 takes the wake",
            "r0 reads the log",
            "ingest appends the interrupt, and nothing is open",
            "r0 finds that the log moved",
            "r0 reads the log",
            "r0 finds rest",
            "r0 acknowledges",
            "r0 looks again",
        ),
    ),
    Corner(
        "a prompt after the interrupt counts",
        Setting(interrupts=1),
        (
            *STREAMING,
            "ingest appends the interrupt",
            "ingest is refused for the interrupt",
            "ingest appends 1",
            "ingest is refused for 1",
            "r0 stops its turn",
            "r0 acknowledges",
            "r0 looks again",
            "r0 takes the wake",
            "r0 reads the log",
            "r0 crosses the boundary",
            "r0 answers and releases",
            "ingest sees 1 move",
            *ENDED,
        ),
    ),
)


def corner(name: str) -> Corner:
    """One corner by its name."""
    return next(corner for corner in CORNERS if corner.name == name)
