"""The whole suite on one stack: figures, and ratios against the limits of the same run."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead_cli.bench import admissions, calls, ownership, projection, raw, replay
from fairlead_cli.bench import turns as turning
from fairlead_cli.bench.long_sessions import live
from fairlead_cli.bench.measure import Timing
from fairlead_cli.bench.parse import AGAINST_SDK, ROUNDS, parsing
from fairlead_cli.embedded.configuration import SIM
from fairlead_cli.embedded.stack import Running, running
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import connect
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import load


@dataclass(frozen=True, slots=True)
class Ratio:
    """A figure against its limit, and what it has to reach."""

    name: str
    value: float
    target: float
    at_most: bool

    @property
    def reached(self) -> bool:
        return self.value <= self.target if self.at_most else self.value >= self.target


@dataclass(slots=True)
class Results:
    """Everything one run measured."""

    mode: str
    timings: dict[str, Timing] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    ratios: list[Ratio] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        """The run as JSON."""
        return {
            "mode": self.mode,
            "timings": {name: timed.told() for name, timed in self.timings.items()},
            "figures": {name: round(value, 3) for name, value in self.figures.items()},
            "ratios": [
                {
                    "name": ratio.name,
                    "value": round(ratio.value, 3),
                    "target": ratio.target,
                    "reached": ratio.reached,
                }
                for ratio in self.ratios
            ],
        }


async def measured(*, relaxed: bool, scale: float, progress: Callable[[str], None]) -> Results:
    """Start a stack of its own, measure, stop it."""
    results = Results("relaxed" if relaxed else "sync always")
    with _place() as place:
        progress("starting the stack")
        async with (
            running(place, sim=True, config=calls.configured(place), relaxed=relaxed) as up,
            connect(up.nats, name="fairlead-bench", timeout_s=30.0) as eventlog,
        ):
            await _measure(results, up, eventlog, scale, progress)
    _compare(results)
    return results


@contextmanager
def _place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as made:
        # Postgres runs as an unprivileged user where we are root: let it reach its data.
        Path(made).chmod(0o755)
        yield Path(made)


async def _measure(
    results: Results,
    up: Running,
    eventlog: EventLog,
    scale: float,
    progress: Callable[[str], None],
) -> None:
    total, timings = max(50, int(500 * scale)), results.timings
    progress("raw publishes")
    timings["raw publish"], timings["raw publish, 32 at once"] = await raw.publishes(
        up.nats, count=total
    )
    progress("admissions")
    (
        timings["admission over NATS"],
        timings["admission over NATS, 32 at once"],
    ) = await admissions.over_nats(eventlog, total=total)
    (
        timings["admission over HTTP"],
        timings["admission over HTTP, 32 at once"],
    ) = await admissions.over_http(up.http, eventlog, total=total)
    progress("turns")
    each = max(10, int(100 * scale))
    timings["prompt to first provider byte"] = await turning.first_byte(
        up.http, eventlog, each=each
    )
    for at_once in (1, 8, 64):
        number = max(5, each * 2 // at_once) if at_once > 1 else each
        timings[f"turn, {at_once} at once"] = await turning.turns(
            up.http, eventlog, at_once=at_once, each=number
        )
    timings["turn with a call"], timings["call to settlement"] = await calls.calls(
        up.http, up.nats, eventlog, each=each
    )
    progress("ownership")
    timings["fenced append"], refused = await ownership.fencing(eventlog, count=total)
    results.figures["refused append, ms"] = refused
    timings["steer to promotion"] = await ownership.steers(eventlog, trials=max(3, each // 10))
    progress("long sessions")
    await _lengths(results, eventlog, up.http, each)
    progress("parsing")
    results.figures |= await parsing(_provider(up), rounds=max(2, int(ROUNDS * scale)))
    progress("projection")
    projected, copied, rows = await projection.projected(up.postgres, eventlog)
    results.figures |= {
        "projector, events/s": projected,
        "raw COPY, events/s": copied,
        "events projected": rows,
    }
    results.figures |= _memory(up)


async def scaled(
    *, runners: int, scale: float, progress: Callable[[str], None]
) -> tuple[Timing, Timing | None]:
    """Turns of 64 sessions whose provider takes a while, with so many runners.

    Of several, one can be killed while it works: the other timing is how soon another took over.
    """
    with _place() as place:
        progress(f"{runners} runner{'s' if runners > 1 else ''}")
        async with (
            running(place, sim=True, scale={"runner": runners}) as up,
            connect(up.nats, name="fairlead-bench", timeout_s=30.0) as eventlog,
        ):
            each = max(3, int(12 * scale))
            turns = await turning.turns(up.http, eventlog, at_once=64, each=each)
            if runners == 1:
                return turns, None
            progress("take-overs")
            trials = max(10, int(30 * scale))
            return turns, await ownership.take_overs(up, eventlog, trials=trials)


async def _lengths(results: Results, eventlog: EventLog, url: str, each: int) -> None:
    for events in (1_000, 10_000):
        folded, streamed = await replay.replays(url, eventlog, events=events)
        results.figures[f"fold {events:,} events, ms"] = folded
        results.figures[f"stream {events:,} events over SSE, ms"] = streamed
    for events, compacted in ((10, False), (5_000, True), (5_000, False)):
        (session,) = await admissions.sessions(eventlog, 1)
        at = Address(DEFAULT_TENANT, session)
        await live(eventlog, at, events=events, compacted=compacted)
        name = f"turn in a session of {events:,} events"
        name += ", compacted" if compacted else ""
        results.timings[name] = await turning.in_session(url, session, each=each)


def _provider(up: Running) -> str:
    """Where the stack's simulated provider listens."""
    return load(up.config, {}).provider[SIM].base_url


def _memory(up: Running) -> dict[str, float]:
    """The resident memory of each process, in MiB."""
    found: dict[str, float] = {}
    for process in up.processes:
        if process.pid is not None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
            found[f"RSS of {process.label}, MiB"] = int(line.split()[1]) / 1024
    return found


def _compare(results: Results) -> None:
    timings, figures = results.timings, results.figures
    alone, together = timings["raw publish"], timings["raw publish, 32 at once"]
    short = timings["turn in a session of 10 events"].p50_ms
    long = timings["turn in a session of 5,000 events, compacted"].p50_ms
    results.ratios = [
        Ratio(
            "admission p50 / raw p50",
            timings["admission over NATS"].p50_ms / alone.p50_ms,
            5,
            at_most=True,
        ),
        Ratio(
            "32-way admissions / raw 32-way",
            timings["admission over NATS, 32 at once"].per_s / together.per_s,
            0.25,
            at_most=False,
        ),
        Ratio(
            "turn p50 / raw p50", timings["turn, 1 at once"].p50_ms / alone.p50_ms, 20, at_most=True
        ),
        Ratio(
            "no-op call p50 / raw p50",
            timings["call to settlement"].p50_ms / alone.p50_ms,
            6,
            at_most=True,
        ),
        Ratio(
            "turns/s, 64 at once / raw 32-way",
            timings["turn, 64 at once"].per_s / together.per_s,
            0.02,
            at_most=False,
        ),
        Ratio(
            "projector / raw COPY",
            figures["projector, events/s"] / figures["raw COPY, events/s"],
            0.3,
            at_most=False,
        ),
        Ratio("turn at 5,000 events / at 10", long / short, 1.2, at_most=True),
    ]
    if AGAINST_SDK in figures:
        results.ratios.append(Ratio(AGAINST_SDK, figures[AGAINST_SDK], 1, at_most=True))
