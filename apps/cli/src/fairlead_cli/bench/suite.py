"""Runs all benchmarks on one stack: timings, figures, and ratios against the limits of the run."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from fairlead_cli.bench import (
    admissions,
    authentication,
    ownership,
    projection,
    replay,
    tool_calls,
    transfer,
    turns,
)
from fairlead_cli.bench.authentication import KNOWN_TOKEN, STATIC_KEY
from fairlead_cli.bench.cost.idleness import wait_until_idle
from fairlead_cli.bench.cost.session_lengths import SessionTurns, compare_medians, compare_sessions
from fairlead_cli.bench.cost.transforms import measure_transforms
from fairlead_cli.bench.locations.file_snapshots import FILE_SNAPSHOT_BARS, measure_file_snapshots
from fairlead_cli.bench.long_sessions import fill_log
from fairlead_cli.bench.measurement import Timing, merge_rounds
from fairlead_cli.bench.sandbox import ADDED_MS, ADDED_MS_MAX, measure_sandbox
from fairlead_cli.bench.stream_parsers import AGAINST_SDK, ROUNDS, compare_parsers
from fairlead_cli.embedded.configuration import SIM
from fairlead_cli.embedded.running_stack import RunningStack
from fairlead_cli.embedded.stack import run_stack
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import connect
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import load

# The bench measures what a gateway can do, so nothing limits its one caller.
UNLIMITED: Final = {
    "FAIRLEAD_GATEWAY_REQUESTS_PER_S": "1000000",
    "FAIRLEAD_GATEWAY_REQUEST_BURST": "1000000",
    "FAIRLEAD_GATEWAY_BYTES_PER_MINUTE": "1000000000000",
    "FAIRLEAD_GATEWAY_STREAMS_MAX": "10000",
}

FLATNESS = "fold of an event, last 1,000 / first 1,000"
EXPORTED: Final = "export, events/s"
IMPORTED: Final = "import, events/s"
TRANSFERRED_MIN: Final = 20_000
ADMISSION: Final = "admission p50 / raw p50"
ADMISSIONS: Final = "32-way admissions / raw 32-way"
PROJECTOR: Final = "projector / raw COPY"
COMPACTED: Final = "turn at 5,000 events, compacted / at 10"
LONG: Final = "turn at 5,000 events / at 10"
LONG_COST: Final = "turn at 5,000 events / at 10, processor time without the simulator"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A figure divided by its limit, with the target to meet."""

    name: str
    value: float
    target: float
    at_most: bool

    @property
    def is_met(self) -> bool:
        return self.value <= self.target if self.at_most else self.value >= self.target


@dataclass(slots=True)
class Results:
    """All timings, figures and ratios of one run."""

    mode: str
    timings: dict[str, Timing] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    compared: dict[str, float] = field(default_factory=dict)
    """The ratios of what was timed in turn."""
    ratios: list[Ratio] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The run as a JSON object."""
        return {
            "mode": self.mode,
            "timings": {name: timing.to_json() for name, timing in self.timings.items()},
            "figures": {name: round(value, 3) for name, value in self.figures.items()},
            "ratios": [
                {
                    "name": ratio.name,
                    "value": round(ratio.value, 3),
                    "target": ratio.target,
                    "reached": ratio.is_met,
                }
                for ratio in self.ratios
            ],
        }


async def run_suite(*, relaxed: bool, scale: float, progress: Callable[[str], None]) -> Results:
    """Start a stack, run all benchmarks, stop the stack."""
    results = Results("relaxed" if relaxed else "sync always")
    with temporary_directory() as directory:
        progress("starting the stack")
        async with (
            run_stack(
                directory,
                sim=True,
                config=tool_calls.write_config(directory),
                relaxed=relaxed,
                gateway=UNLIMITED,
            ) as stack,
            connect(stack.operator, name="fairlead-bench", timeout_s=30.0) as eventlog,
        ):
            await _measure(results, stack, eventlog, scale, progress)
    _compare(results)
    return results


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """A directory for the state of a stack."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as path:
        # Postgres may run as another user, who must be able to enter the directory.
        Path(path).chmod(0o755)
        yield Path(path)


async def _measure(
    results: Results,
    stack: RunningStack,
    eventlog: EventLog,
    scale: float,
    progress: Callable[[str], None],
) -> None:
    total, timings = max(50, int(500 * scale)), results.timings
    progress("raw publishes and admissions")
    compared = await admissions.compare_nats_admissions(stack.operator, eventlog, total=total)
    timings |= {
        "raw publish": compared.raw,
        "raw publish, 32 at once": compared.raw_together,
        "admission over NATS": compared.alone,
        "admission over NATS, 32 at once": compared.together,
    }
    results.compared |= {ADMISSION: compared.slowness, ADMISSIONS: compared.throughput}
    (
        timings["admission over HTTP"],
        timings["admission over HTTP, 32 at once"],
    ) = await admissions.time_http_admissions(stack.http_with_key, eventlog, total=total)
    progress("turns")
    each = max(10, int(100 * scale))
    await _measure_turns(results, stack, eventlog, each)
    progress("transforms")
    results.figures |= await measure_transforms(
        stack.http_with_key, stack.local_client, eventlog, each=each
    )
    progress("sandbox, snapshots of files")
    results.figures |= await _measure_location(stack.state.root, scale, each)
    progress("ownership")
    timings["fenced append"], refusal_ms = await ownership.time_fenced_appends(
        eventlog, count=total
    )
    results.figures["refused append, ms"] = refusal_ms
    timings["steer to promotion"] = await ownership.time_steers(eventlog, trials=max(3, each // 10))
    progress("long sessions")
    await _measure_long_sessions(results, stack, eventlog, each)
    progress("parsing")
    results.figures |= await compare_parsers(_sim_url(stack), rounds=max(2, int(ROUNDS * scale)))
    progress("authentication")
    results.figures |= await authentication.measure_authentication(
        stack.state.root, count=max(500, int(5000 * scale))
    )
    progress("projection")
    await projection.lengthen_log(eventlog, events_each=max(2000, int(4000 * scale)))
    await wait_until_idle(stack)
    await _measure_projection(results, stack, eventlog)
    results.figures |= _memory(stack)


async def _measure_turns(
    results: Results, stack: RunningStack, eventlog: EventLog, each: int
) -> None:
    timings = results.timings
    await wait_until_idle(stack)
    timings["prompt to first provider byte"] = await turns.time_first_byte(
        stack.http_with_key, eventlog, each=each
    )
    for at_once in (1, 8, 64):
        await wait_until_idle(stack)
        number = max(5, each * 2 // at_once) if at_once > 1 else each
        timings[f"turn, {at_once} at once"] = await turns.time_turns(
            stack.http_with_key, eventlog, at_once=at_once, each=number
        )
    await wait_until_idle(stack)
    timings["turn with a call"], timings["call to settlement"] = await tool_calls.time_calls(
        stack.http_with_key, stack.operator, eventlog, each=each
    )


async def _measure_location(root: Path, scale: float, each: int) -> dict[str, float]:
    """What a worker adds to a command, and to a step."""
    return {
        **await measure_sandbox(root, rounds=max(10, each)),
        **await measure_file_snapshots(root / "bench-snapshots", rounds=max(3, int(5 * scale))),
    }


async def _measure_projection(results: Results, stack: RunningStack, eventlog: EventLog) -> None:
    """A rebuild by this process alone, and by as many as there are cores, as `fairlead rebuild` does."""
    for name, processes in (("one process", 1), ("a process a core", os.cpu_count() or 1)):
        compared = await projection.measure_projection(
            stack.postgres_admin, eventlog, stack.operator, processes=processes
        )
        results.figures |= {
            f"projector, {name}, events/s": compared.projected_per_s,
            f"raw COPY beside {name}, events/s": compared.copied_per_s,
            f"projector, {name} / raw COPY": compared.ratio,
            "events projected": compared.rows,
        }
        results.compared[PROJECTOR] = max(compared.ratio, results.compared.get(PROJECTOR, 0))


async def run_scale_out(
    *, runners: int, scale: float, progress: Callable[[str], None]
) -> tuple[Timing, Timing | None]:
    """Time turns of 64 sessions with that many runners.

    With several runners, also time how soon another runner takes over after one is killed.
    """
    with temporary_directory() as directory:
        progress(f"{runners} runner{'s' if runners > 1 else ''}")
        async with (
            run_stack(directory, sim=True, scale={"runner": runners}, gateway=UNLIMITED) as stack,
            connect(stack.operator, name="fairlead-bench", timeout_s=30.0) as eventlog,
        ):
            each = max(3, int(12 * scale))
            timing = await turns.time_turns(stack.http_with_key, eventlog, at_once=64, each=each)
            if runners == 1:
                return timing, None
            progress("take-overs")
            trials = max(10, int(30 * scale))
            return timing, await ownership.time_take_overs(stack, eventlog, trials=trials)


async def _measure_long_sessions(
    results: Results, stack: RunningStack, eventlog: EventLog, each: int
) -> None:
    url = stack.http_with_key
    for events in (1_000, 10_000):
        fold_ms, stream_ms = await replay.time_replay(url, eventlog, events=events)
        results.figures[f"fold {events:,} events, ms"] = fold_ms
        results.figures[f"stream {events:,} events over SSE, ms"] = stream_ms
    (
        results.figures["fold 10,000 events in memory, ms"],
        results.figures[FLATNESS],
    ) = replay.time_fold(events=10_000)
    rates = await transfer.measure_transfer(url, events=20_000)
    results.figures |= {EXPORTED: rates.exported, IMPORTED: rates.imported}
    sessions: dict[str, str] = {}
    for events, compacted in ((10, False), (5_000, True), (5_000, False)):
        (session,) = await admissions.create_sessions(eventlog, 1)
        at = Address(DEFAULT_TENANT, session)
        await fill_log(eventlog, at, until_seq=events, compact=compacted)
        name = f"turn in a session of {events:,} events"
        sessions[name + (", compacted" if compacted else "")] = session
    measured = await compare_sessions(stack, list(sessions.values()), each=each)
    short, compacted_long, long = measured
    for name, turns_of_one in zip(sessions, measured, strict=True):
        results.timings[name] = merge_rounds(turns_of_one.timings)
        results.figures |= {
            f"{name}: services, ms of processor time": median(turns_of_one.services_ms),
            f"{name}: simulator, ms of processor time": median(turns_of_one.simulator_ms),
        }
    results.compared |= {
        COMPACTED: _compare_p50(compacted_long, short),
        LONG: _compare_p50(long, short),
        LONG_COST: compare_medians(long.services_ms, short.services_ms),
    }


def _compare_p50(turns_of_one: SessionTurns, others: SessionTurns) -> float:
    return compare_medians(
        [timing.p50_ms for timing in turns_of_one.timings],
        [timing.p50_ms for timing in others.timings],
    )


def _sim_url(stack: RunningStack) -> str:
    """The URL of the stack's simulated provider."""
    return load(stack.config, {}).provider[SIM].base_url


def _memory(stack: RunningStack) -> dict[str, float]:
    """The resident memory of each process, in MiB."""
    memory: dict[str, float] = {}
    for process in stack.processes:
        if process.pid is not None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
            memory[f"RSS of {process.label}, MiB"] = int(line.split()[1]) / 1024
    return memory


def _compare(results: Results) -> None:
    timings, figures, compared = results.timings, results.figures, results.compared
    alone, together = timings["raw publish"], timings["raw publish, 32 at once"]
    results.ratios = [
        Ratio(ADMISSION, compared[ADMISSION], 3, at_most=True),
        Ratio(ADMISSIONS, compared[ADMISSIONS], 0.5, at_most=False),
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
        Ratio(PROJECTOR, compared[PROJECTOR], 0.25, at_most=False),
        Ratio(COMPACTED, compared[COMPACTED], 1.2, at_most=True),
        Ratio(LONG, compared[LONG], 1.3, at_most=True),
        Ratio(LONG_COST, compared[LONG_COST], 1.3, at_most=True),
        Ratio(FLATNESS, figures[FLATNESS], 1.3, at_most=True),
        Ratio(STATIC_KEY, figures[STATIC_KEY], 50, at_most=True),
        Ratio(KNOWN_TOKEN, figures[KNOWN_TOKEN], 150, at_most=True),
        Ratio(EXPORTED, figures[EXPORTED], TRANSFERRED_MIN, at_most=False),
        Ratio(IMPORTED, figures[IMPORTED], TRANSFERRED_MIN, at_most=False),
    ]
    if AGAINST_SDK in figures:
        results.ratios.append(Ratio(AGAINST_SDK, figures[AGAINST_SDK], 1, at_most=True))
    for name, most in FILE_SNAPSHOT_BARS.items():
        if name in figures:
            results.ratios.append(Ratio(name, figures[name], most, at_most=True))
    if ADDED_MS in figures:
        results.ratios.append(Ratio(ADDED_MS, figures[ADDED_MS], ADDED_MS_MAX, at_most=True))
