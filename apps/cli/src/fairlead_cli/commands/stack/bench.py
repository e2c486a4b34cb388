"""`fairlead bench`: measures a stack of its own, prints tables, writes JSON."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import uvloop

from fairlead_cli import terminal
from fairlead_cli.bench.capacity.run import run_capacity
from fairlead_cli.bench.cost.report import LoadCost
from fairlead_cli.bench.cost.run import run_cost
from fairlead_cli.bench.cost.server_counts import ServerCounts
from fairlead_cli.bench.cost.turn_path import time_turn_path
from fairlead_cli.bench.memory.soak import MemorySample, run_soak
from fairlead_cli.bench.streams.suite import run_stream_suite
from fairlead_cli.bench.streams.terminal_chat import run_chat_bench
from fairlead_cli.bench.suite import Results, run_scale_out, run_suite
from fairlead_cli.options.stack import BENCH_FILE

DEFAULT_CHAT = Path(".bench/chat.json")
DEFAULT_COST = Path(".bench/cost.json")
DEFAULT_MEMORY = Path(".bench/memory.json")
DEFAULT_PATH = Path(".bench/path.json")
DEFAULT_CAPACITY = Path(".bench/capacity.json")
DEFAULT_STREAMS = Path(".bench/streams.json")


def run(args: argparse.Namespace) -> int:
    """Measure with a sync of every commit to disk, and again without it; or measure the cost."""
    if args.what == "chat":
        return _run_chat(args)
    if args.what == "cost":
        return _run_cost(args)
    if args.what == "memory":
        return _run_memory(args)
    if args.what == "path":
        return _run_path(args)
    if args.what == "capacity":
        return _run_capacity(args)
    if args.what == "streams":
        return _run_streams(args)
    console = terminal.stderr_console()
    modes = {"both": (False, True), "always": (False,), "relaxed": (True,)}[args.mode]
    runs: list[dict[str, object]] = []
    for relaxed in modes:
        console.print("relaxed:" if relaxed else "sync always:")
        results = uvloop.run(run_suite(relaxed=relaxed, scale=args.scale, progress=console.print))
        _show(results)
        runs.append(results.to_json())
    runs.append(_run_scale_out(args.scale, console.print))
    _write(args.out or BENCH_FILE, runs)
    return 0


def _run_chat(args: argparse.Namespace) -> int:
    console = terminal.stderr_console()
    figures = uvloop.run(run_chat_bench(scale=args.scale, progress=console.print))
    grid = terminal.table("figure", "value")
    for label, value in figures.items():
        grid.add_row(label, f"{value:.1f}")
    terminal.stdout_console().print(grid)
    _write(args.out or DEFAULT_CHAT, [dict(figures)])
    return 0


def _run_cost(args: argparse.Namespace) -> int:
    console = terminal.stderr_console()
    costs = uvloop.run(run_cost(scale=args.scale, progress=console.print, solo=args.solo))
    _show_costs(costs)
    _write(args.out or DEFAULT_COST, [cost.to_json() for cost in costs])
    return 0


def _run_memory(args: argparse.Namespace) -> int:
    out = terminal.stdout_console()

    def show(sample: MemorySample) -> None:
        each = ", ".join(f"{label} {rss:.0f}" for label, rss in sample.rss.items())
        shared = "" if sample.pss is None else f"; services, shared pages once: {sample.pss:.0f}"
        out.print(f"{sample.turns:>6} turns, MiB: {each}{shared}", soft_wrap=True)

    soak = uvloop.run(
        run_soak(
            turns=args.turns,
            solo=args.solo,
            progress=show,
            cache_sessions_max=args.cache_sessions,
        )
    )
    grid = terminal.table("process", "end / after the warm-up")
    for label in soak.samples[-1].rss:
        grid.add_row(label, f"{soak.growth(label):.2f}")
    out.print(grid)
    _write(args.out or DEFAULT_MEMORY, [soak.to_json()])
    return 0


def _run_path(args: argparse.Namespace) -> int:
    turns = max(20, int(300 * args.scale))
    progress = terminal.stderr_console().print
    timings = uvloop.run(time_turn_path(turns=turns, solo=args.solo, progress=progress))
    grid = terminal.table("after the prompt", "p50 ms", "p99 ms")
    for name, timing in timings.items():
        grid.add_row(name, f"{timing.p50_ms:.2f}", f"{timing.p99_ms:.2f}")
    terminal.stdout_console().print(grid)
    _write(args.out or DEFAULT_PATH, [{name: each.to_json() for name, each in timings.items()}])
    return 0


def _run_capacity(args: argparse.Namespace) -> int:
    console = terminal.stderr_console()
    figures = uvloop.run(run_capacity(scale=args.scale, progress=console.print))
    grid = terminal.table("capacity", "value")
    for name, value in figures.items():
        grid.add_row(name, f"{value:,.2f}")
    terminal.stdout_console().print(grid)
    _write(args.out or DEFAULT_CAPACITY, [{"mode": "capacity", "figures": figures}])
    return 0


def _run_streams(args: argparse.Namespace) -> int:
    console = terminal.stderr_console()
    figures = uvloop.run(run_stream_suite(scale=args.scale, progress=console.print))
    grid = terminal.table("streams", "value")
    for name, value in figures.items():
        grid.add_row(name, f"{value:,.1f}")
    terminal.stdout_console().print(grid)
    _write(args.out or DEFAULT_STREAMS, [{"mode": "streams", "figures": figures}])
    return 0


def _write(out: Path, runs: object) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(runs, indent=2) + "\n")
    terminal.stderr_console().print(f"written to {out}")


def _run_scale_out(scale: float, progress: Callable[[str], None]) -> dict[str, object]:
    """The same load with one runner and with two, and the take-over when one of two is killed."""
    (one_runner, _), (two_runners, take_over) = (
        uvloop.run(run_scale_out(runners=runners, scale=scale, progress=progress))
        for runners in (1, 2)
    )
    assert take_over is not None, "of two runners one takes over"
    timings = {
        "64 sessions, 1 runner": one_runner,
        "64 sessions, 2 runners": two_runners,
        "take-over after SIGKILL": take_over,
    }
    grid = terminal.table("scale-out", "p50 ms", "p99 ms", "per second")
    for name, timing in timings.items():
        grid.add_row(name, f"{timing.p50_ms:.1f}", f"{timing.p99_ms:.1f}", f"{timing.per_s:,.1f}")
    terminal.stdout_console().print(grid, "", sep="\n")
    return {"mode": "scale-out", **{name: timing.to_json() for name, timing in timings.items()}}


def _show(results: Results) -> None:
    out = terminal.stdout_console()
    timings = terminal.table(results.mode, "p50 ms", "p99 ms", "per second")
    for name, timing in results.timings.items():
        timings.add_row(
            name, f"{timing.p50_ms:.2f}", f"{timing.p99_ms:.2f}", f"{timing.per_s:,.0f}"
        )
    figures = terminal.table("figure", "value")
    for name, value in results.figures.items():
        figures.add_row(name, f"{value:,.1f}")
    ratios = terminal.table("ratio", "value", "to reach", "")
    for ratio in results.ratios:
        sign = "≤" if ratio.at_most else "≥"
        verdict = "reached" if ratio.is_met else "missed"
        ratios.add_row(ratio.name, f"{ratio.value:.3f}", f"{sign} {ratio.target}", verdict)
    out.print(timings, "", figures, "", ratios, "", sep="\n")


def _show_costs(costs: list[LoadCost]) -> None:
    """Processor time in milliseconds, normalised by a fixed loop; then what the servers counted."""
    processes = list(costs[0].usage)
    times = terminal.table("ms of processor time", *processes, "all", "per second")
    switches = terminal.table("voluntary context switches", *processes)
    counts = terminal.table("counted", *ServerCounts._fields)
    for cost in costs:
        milliseconds = (f"{cost.cpu_ms(name):.2f}" for name in processes)
        times.add_row(cost.load, *milliseconds, f"{cost.total_cpu_ms:.2f}", f"{cost.per_s:.1f}")
        each = (f"{cost.usage[name].switches / cost.units:.0f}" for name in processes)
        switches.add_row(cost.load, *each)
        counts.add_row(cost.load, *(f"{cost.each(name):.1f}" for name in ServerCounts._fields))
    terminal.stdout_console().print(times, "", switches, "", counts, "", sep="\n")
